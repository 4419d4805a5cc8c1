// Writes models and files with a fault in them.
#include "tests/gst/planted_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <vector>

#include "engine/engine.h"
#include "kernels/base/hash.h"
#include "tests/faults/wrong_device.h"
#include "tests/gst/harness.h"
#include "tuning/op_key.h"
#include "tuning/tuning_cache.h"

namespace clinfer::planted {
namespace {

constexpr const char* kBall = CLINFER_SOURCE_DIR "/pipelines/models/ball.xml";

std::string port(int id, std::initializer_list<int> shape, const char* precision = "FP32") {
  std::string dims;
  for (const int size : shape) dims += "<dim>" + std::to_string(size) + "</dim>";
  return "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision + "\">" + dims +
         "</port>";
}

// Plays a few frames through clinfer to the end of the stream.
void play(const std::string& properties) {
  const Pipeline pipeline(
      "videotestsrc num-buffers=3 pattern=ball ! "
      "video/x-raw,format=NV12,width=320,height=240 ! clinfer first-tier=false " +
      properties + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  EXPECT_EQ(error_on(pipeline.element, std::chrono::minutes(10)), "");
}

// The header of a file of the program cache (engine/ocl/compiler/program_cache.cpp).
struct CacheHeader {
  char magic[8];
  uint64_t key_length, binary_length, checksum;
};

// Adds to each tenth weight of a compiled graph (engine/compile/graph_cache.cpp) and signs it anew.
// Returns the number of weights that are others.
size_t change_weights(const std::string& path) {
  std::string file = read_file(path);
  CacheHeader header;
  if (file.size() < sizeof header) return 0;
  std::memcpy(&header, file.data(), sizeof header);
  const std::string key = file.substr(sizeof header, header.key_length);
  if (!key.starts_with("graph|")) return 0;
  std::string entry = file.substr(sizeof header + header.key_length);
  uint64_t nodes = 0;
  std::memcpy(&nodes, entry.data(), sizeof nodes);
  constexpr size_t kAlignment = 64;
  const size_t pool = (sizeof nodes + nodes + kAlignment - 1) / kAlignment * kAlignment;
  size_t changed = 0;
  for (size_t at = pool; at + sizeof(float) <= entry.size(); at += 10 * sizeof(float)) {
    float weight = 0;
    std::memcpy(&weight, entry.data() + at, sizeof weight);
    const float size = std::abs(weight);
    if (!(size > 1e-3f && size < 100)) continue;  // no weight, but an integer
    weight += 0.5f;
    std::memcpy(entry.data() + at, &weight, sizeof weight);
    ++changed;
  }
  header.checksum = hash_of(entry, hash_of(key));
  file.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
  file.replace(sizeof header + key.size(), entry.size(), entry);
  std::ofstream(path, std::ios::binary) << file;
  return changed;
}

// The value of TILE_P in a kernel's description.
std::string pixels_at_a_time(const std::string& kernel) {
  const size_t at = kernel.find("TILE_P=");
  return at == kernel.npos ? "" : kernel.substr(at + 7, kernel.find(' ', at) - at - 7);
}

}  // namespace

std::string overflow_in_f16(const TemporaryFolder& folder) {
  constexpr int kPixels = 16 * 16, kInputs = 3 * kPixels;
  const int64_t shape[] = {1, kInputs};
  std::vector<float> weights(size_t{kInputs} * 3 + 9);
  for (size_t i = 0; i < kInputs; ++i) weights[i * 3 + i / kPixels] = 1000;
  for (size_t i = 0; i < 3; ++i) weights[size_t{kInputs} * 3 + i * 4] = 1e-4f;
  std::string bin(reinterpret_cast<const char*>(shape), sizeof shape);
  bin.append(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float));
  folder.write("large.bin", bin);
  const std::string product =
      R"(" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/><input>)";
  const auto constant = [](int id, const char* name, const std::string& data,
                           const std::string& out) {
    return "<layer id=\"" + std::to_string(id) + "\" name=\"" + name +
           R"(" type="Const" version="opset1"><data )" + data + "/><output>" + out +
           "</output></layer>";
  };
  std::string edges;
  for (const auto& [from, out, to, in] : std::initializer_list<std::array<int, 4>>{{0, 0, 2, 0},
                                                                                   {1, 0, 2, 1},
                                                                                   {2, 2, 4, 0},
                                                                                   {3, 0, 4, 1},
                                                                                   {4, 2, 5, 0},
                                                                                   {5, 1, 7, 0},
                                                                                   {6, 0, 7, 1},
                                                                                   {7, 2, 8, 0}})
    edges += "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" +
             std::to_string(out) + "\" to-layer=\"" + std::to_string(to) + "\" to-port=\"" +
             std::to_string(in) + "\"/>";
  const std::string model = folder.write(
      "large.xml",
      R"(<net name="large" version="11"><layers>
<layer id="0" name="data" type="Parameter" version="opset1">
<data shape="1,3,16,16" element_type="f32"/><output>)" +
          port(0, {1, 3, 16, 16}) + "</output></layer>" +
          constant(1, "shape", R"(element_type="i64" shape="2" offset="0" size="16")",
                   port(0, {2}, "I64")) +
          R"(<layer id="2" name="flat" type="Reshape" version="opset1"><data special_zero="false"/>
<input>)" +
          port(0, {1, 3, 16, 16}) + port(1, {2}, "I64") + "</input><output>" +
          port(2, {1, kInputs}) + "</output></layer>" +
          constant(3, "sums", R"(element_type="f32" shape="768,3" offset="16" size="9216")",
                   port(0, {kInputs, 3})) +
          R"(<layer id="4" name="sum)" + product + port(0, {1, kInputs}) + port(1, {kInputs, 3}) +
          "</input><output>" + port(2, {1, 3}) + "</output></layer>" +
          R"(<layer id="5" name="positive" type="ReLU" version="opset1"><input>)" +
          port(0, {1, 3}) + "</input><output>" + port(1, {1, 3}) + "</output></layer>" +
          constant(6, "shares", R"(element_type="f32" shape="3,3" offset="9232" size="36")",
                   port(0, {3, 3})) +
          R"(<layer id="7" name="share)" + product + port(0, {1, 3}) + port(1, {3, 3}) +
          "</input><output>" + port(2, {1, 3}) + "</output></layer>" +
          R"(<layer id="8" name="result" type="Result" version="opset1"><input>)" +
          port(0, {1, 3}) + "</input></layer></layers><edges>" + edges + "</edges></net>");
  return "config=INFERENCE_PRECISION=f16 post-process=none model=" + model;
}

std::string custom_layer(const TemporaryFolder& folder, bool is_wrong) {
  const std::string kernel = R"(
__kernel void average(const __global INPUT0_TYPE* in, __global OUTPUT0_TYPE* out) {
  const int i = get_global_id(0), column = i % 4, row = i / 4;
  float sum = 0;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) sum += in[(row * 4 + y) * 16 + column * 4 + x];
  out[i] = sum / )";
  folder.write("average.cl", kernel + (is_wrong ? "15" : "16") + ";\n}\n");
  const std::string description = folder.write("average.xml", R"(
<CustomLayer name="AvgPool" type="SimpleGPU" version="1">
<Kernel entry="average"><Source filename="average.cl"/></Kernel>
<Buffers><Tensor arg-index="0" type="input" port-index="0" format="BFYX"/>
<Tensor arg-index="1" type="output" port-index="0" format="BFYX"/></Buffers>
</CustomLayer>)");
  return "post-process=none config-file=" + description +
         " model=" + testing_models::blocks_model();
}

std::string cached_graph(const TemporaryFolder& folder) {
  const std::string cache = folder / "cache",
                    properties = "cache-dir=" + cache + " model=" + std::string(kBall);
  play(properties);
  size_t changed = 0;
  for (const auto& file : std::filesystem::directory_iterator(cache))
    changed += change_weights(file.path());
  EXPECT_GT(changed, 100u) << "no compiled graph was in the cache";
  return properties;
}

std::string cached_programs(const TemporaryFolder& folder) {
  const std::string properties = "cache-dir=" + (folder / "cache") + " model=" + std::string(kBall);
  setenv(kWrongPrograms, "STORE_float", 1);
  play(properties);
  unsetenv(kWrongPrograms);
  return properties;
}

std::string tuned_kernel(const TemporaryFolder& folder) {
  const std::string model = testing_models::color_model(), file = folder / "tuning.json";
  Config config;
  config.device = "CPU";
  config.tuning_db = config.first_tier = false;
  std::string untuned;
  for (int index = -1; index < 100; ++index) {
    const auto compiled = CompiledModel::compile(Model::read(model), config);
    const std::vector<LayerTuning>& layers = compiled->tuning().layers;
    const auto product = std::find_if(layers.begin(), layers.end(), [](const LayerTuning& layer) {
      return layer.type == "MatMul";
    });
    if (product == layers.end()) break;
    const std::string pixels = pixels_at_a_time(product->kernel);
    if (index == -1) untuned = pixels;
    if (pixels != untuned) {
      setenv(kWrongPrograms, ("#define TILE_P " + pixels + "\n").c_str(), 1);
      return "cache-dir=\"\" config=TUNING_DB=NO,PERSISTENT_KERNEL=NO device=CPU "
             "tuning-mode=use-existing tuning-file=" +
             file + " model=" + model;
    }
    // Two elements, as other engines write records: no version says whether it still holds.
    TuningRecord record;
    record.family = product->kernel.substr(0, product->kernel.find(' '));
    record.index = index + 1;
    TuningCache tuning;
    tuning.set(compiled->device().compute_units, record_hash(product->op, compiled->device().name),
               record);
    folder.write("tuning.json", tuning.to_text());
    config.tuning_file = file;
    config.tuning_mode = TuningMode::use_existing;
  }
  ADD_FAILURE() << "no record chooses another kernel";
  return "";
}

void forget_compiler() { unsetenv(kWrongPrograms); }

}  // namespace clinfer::planted
