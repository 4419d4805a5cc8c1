// Writes models and files with a fault in them.
#include "tests/gst/infer/model/planted_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "engine/engine.h"
#include "kernels/base/hash.h"
#include "tests/faults/wrong_device.h"
#include "tests/gst/harness.h"
#include "tests/small_ir.h"
#include "tuning/op_key.h"
#include "tuning/tuning_cache.h"

namespace clinfer::planted {
namespace {

constexpr const char* kBall = CLINFER_SOURCE_DIR "/pipelines/models/ball.xml";

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
  constexpr int64_t kPixels = 16 * 16, kInputs = 3 * kPixels;
  std::vector<float> sums(kInputs * 3), shares(9);
  for (size_t i = 0; i < kInputs; ++i) sums[i * 3 + i / kPixels] = 1000;
  for (size_t i = 0; i < 3; ++i) shares[i * 4] = 1e-4f;
  const std::string product = R"(transpose_a="false" transpose_b="false")";
  test::SmallIr ir;
  const int data = ir.input({1, 3, 16, 16}, "data");
  const int flat = ir.add("Reshape", 1, R"(special_zero="false")",
                          {data, ir.integers({1, kInputs})}, {1, kInputs}, "flat");
  const int sum = ir.add("MatMul", 1, product, {flat, ir.constant({kInputs, 3}, sums)}, {1, 3});
  const int positive = ir.add("ReLU", 1, "", {sum}, {1, 3}, "positive");
  ir.result(ir.add("MatMul", 1, product, {positive, ir.constant({3, 3}, shares)}, {1, 3}, "share"));
  const auto weights = ir.weights();
  folder.write("large.bin",
               std::string(reinterpret_cast<const char*>(weights.data()), weights.size()));
  return "config=INFERENCE_PRECISION=f16 post-process=none model=" +
         folder.write("large.xml", ir.text());
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
