// Real models from cold caches: what the host computes while kernels are compiled agrees with what
// the device computes after, and each frame is of one of the two.
#include <gst/gst.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "tests/gst/first_tier.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kCompiling = 1500s;  // on a machine that does much else

struct Values {
  std::vector<int> dims;
  std::vector<float> values;
};
using Outputs = std::map<std::string, Values>;

fs::path data_folder() {
  const char* shared = std::getenv("CLINFER_SHARED");
  return shared != nullptr ? fs::path(shared) / "data" : fs::path();
}

// The models of the shared data, and a yolov8n.
std::vector<std::string> model_files() {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(data_folder() / "models", none)) {
    const fs::path xml = entry.path() / (entry.path().filename().string() + ".xml");
    // Its three inputs are two pictures and a pose.
    if (fs::exists(xml) && xml.string().find("gaze-estimation") == std::string::npos)
      files.push_back(xml.string());
  }
  std::sort(files.begin(), files.end());
  const fs::path yolo = data_folder() / "../heads/real/yolov8n-pose_int8_openvino_model";
  if (fs::exists(yolo)) files.push_back((yolo / "yolov8n-pose.xml").string());
  return files;
}

bool is_quantised(const std::string& model) {
  const fs::path folder = fs::path(model).parent_path().filename();
  for (const char* part : {"INT8", "int8", "quant"})
    if (folder.string().find(part) != std::string::npos) return true;
  return false;
}

// A picture on which the model has a reference, else a street.
std::string picture_for(const std::string& model) {
  std::set<std::string> pictures;
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator(data_folder() / "ref" / fs::path(model).stem(), none)) {
    const std::string name = entry.path().filename().string();
    const fs::path png = data_folder() / "frames" / (name.substr(0, name.find('.')) + ".png");
    if (fs::exists(png)) pictures.insert(png.string());
  }
  return pictures.empty() ? (data_folder() / "frames/street.png").string() : *pictures.begin();
}

struct Frame8 {
  Handle<GstBuffer> buffer;
  Handle<GstCaps> caps;
};

Frame8 decode(const std::string& png) {
  Harness decoder("filesrc location=" + png +
                  " ! pngdec ! videoconvert ! capsfilter caps=video/x-raw,format=BGR");
  gst_harness_play(decoder.get());
  Frame8 frame{decoder.pull(), {}};
  frame.caps = Handle<GstCaps>(gst_pad_get_current_caps(decoder.get()->sinkpad));
  return frame;
}

template <typename T>
std::vector<float> floats_of(GBytes* bytes) {
  gsize size = 0;
  const auto* data = static_cast<const T*>(g_bytes_get_data(bytes, &size));
  std::vector<float> values;
  for (gsize i = 0; i < size / sizeof(T); ++i) values.push_back(static_cast<float>(data[i]));
  return values;
}

std::vector<float> floats_of(const TensorView& tensor) {
  GBytes* bytes = tensor.data.get();
  if (tensor.type == "f32") return floats_of<float>(bytes);
  if (tensor.type == "u8") return floats_of<uint8_t>(bytes);
  if (tensor.type == "i32") return floats_of<int32_t>(bytes);
  if (tensor.type == "i64") return floats_of<int64_t>(bytes);
  ADD_FAILURE() << tensor.name << " is of type " << tensor.type;
  return {};
}

Outputs outputs_of(GstBuffer* buffer) {
  Outputs outputs;
  for (const ResultView& result : read_results(buffer)) {
    EXPECT_EQ(result.outcome, Outcome::run);
    for (const TensorView& tensor : result.tensors) {
      EXPECT_NE(tensor.data, nullptr) << tensor.name;
      if (tensor.data != nullptr) outputs[tensor.name] = {tensor.dims, floats_of(tensor)};
    }
  }
  return outputs;
}

bool same_bits(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.values.size() != values.values.size() ||
        std::memcmp(other->second.values.data(), values.values.data(),
                    values.values.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

// Rows of DetectionOutput: image, class, confidence, corners.
using Row = std::array<float, 7>;

std::vector<Row> rows_above(const Values& values, float confidence) {
  std::vector<Row> rows;
  for (size_t i = 0; i + 7 <= values.values.size(); i += 7) {
    Row row;
    std::copy_n(values.values.begin() + static_cast<std::ptrdiff_t>(i), 7, row.begin());
    if (row[0] >= 0 && row[2] > confidence) rows.push_back(row);
  }
  return rows;
}

bool has_row(const std::vector<Row>& rows, const Row& wanted, float tolerance) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    if (row[0] != wanted[0] || row[1] != wanted[1]) return false;
    for (size_t i = 2; i < 7; ++i)
      if (std::fabs(row[i] - wanted[i]) > tolerance) return false;
    return true;
  });
}

void expect_close(const std::string& name, const Values& first, const Values& full,
                  bool quantised) {
  ASSERT_EQ(first.dims, full.dims) << name;
  ASSERT_EQ(first.values.size(), full.values.size()) << name;
  if (full.dims.size() == 4 && full.dims[0] == 1 && full.dims[1] == 1 && full.dims[3] == 7) {
    const float tolerance = quantised ? 0.05f : 0.01f;
    for (const Row& row : rows_above(full, 0.3f))
      EXPECT_TRUE(has_row(rows_above(first, 0.2f), row, tolerance)) << name << ", " << row[2];
    for (const Row& row : rows_above(first, 0.35f))
      EXPECT_TRUE(has_row(rows_above(full, 0.2f), row, tolerance)) << name << ", " << row[2];
    return;
  }
  double error = 0, largest = 1, product = 0, square = 0, other = 0;
  for (size_t i = 0; i < full.values.size(); ++i) {
    const double a = first.values[i], b = full.values[i];
    ASSERT_TRUE(std::isfinite(a) == std::isfinite(b)) << name << ", " << i;
    if (!std::isfinite(a)) continue;
    error = std::max(error, std::fabs(a - b));
    largest = std::max(largest, std::fabs(b));
    product += a * b;
    square += a * a;
    other += b * b;
  }
  if (!quantised) {
    EXPECT_LE(error, 1e-3 * largest) << name;
  } else if (other > 0) {
    EXPECT_GT(product / std::sqrt(square * other), 0.995) << name;
  }
}

class OpenModels : public testing::TestWithParam<std::string> {};

TEST_P(OpenModels, BothTiersAgree) {
  const ColdCaches cold;
  const Frame8 frame = decode(picture_for(GetParam()));
  ASSERT_TRUE(frame.buffer);
  Harness harness("clinfer device=CPU post-process=none attach-tensors=true model=" + GetParam() +
                  " config=INFERENCE_PRECISION=f32 " + cold.properties());
  gst_harness_set_src_caps(harness.get(), gst_caps_ref(frame.caps.get()));
  std::vector<Outputs> different;  // one after the other
  std::vector<std::string> tiers;
  const auto push = [&] {
    ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_copy(frame.buffer.get())), GST_FLOW_OK)
        << error_on(harness.get()->element, 0ms);
    const Handle<GstBuffer> out = harness.pull();
    ASSERT_TRUE(out);
    Outputs outputs = outputs_of(out.get());
    ASSERT_FALSE(outputs.empty());
    if (different.empty() || !same_bits(different.back(), outputs))
      different.push_back(std::move(outputs));
    const std::string tier = text_of(harness.clinfer(), "tier");
    if (tiers.empty() || tiers.back() != tier) tiers.push_back(tier);
  };
  const auto until = Clock::now() + kCompiling;
  do {
    push();
  } while (!HasFailure() && tiers.back() != "full" && Clock::now() < until);
  for (int i = 0; i < 3 && !HasFailure(); ++i) push();
  ASSERT_FALSE(HasFailure());
  // A small model can be compiled before the first frame comes.
  EXPECT_EQ(tiers.back(), "full");
  EXPECT_LE(tiers.size(), 2u);
  std::vector<std::string> texts;
  do {  // the last one is posted after the device has taken over
    for (std::string& text : progress_of(harness.bus())) texts.push_back(std::move(text));
    std::this_thread::sleep_for(10ms);
  } while (index_of(texts, "Compiled ") == texts.size() && Clock::now() < until);
  EXPECT_LT(index_of(texts, "The host computes"), index_of(texts, "Compiled "));
  EXPECT_LT(index_of(texts, "Compiled "), texts.size());
  // A picture that both had a part in would be a third one.
  ASSERT_LE(different.size(), 2u);
  const Outputs &first = different.front(), &full = different.back();
  ASSERT_EQ(first.size(), full.size());
  for (const auto& [name, values] : first) {
    ASSERT_TRUE(full.contains(name)) << name;
    expect_close(name, values, full.at(name), is_quantised(GetParam()));
  }
}

class OpenPictureModels : public testing::TestWithParam<std::string> {};

TEST_P(OpenPictureModels, BothTiersAgree) {
  const fs::path model = data_folder() / "models" / GetParam() / (std::string(GetParam()) + ".xml");
  if (!fs::exists(model)) GTEST_SKIP() << "needs " << model;
  const ColdCaches cold;
  const Frame8 frame = decode((data_folder() / "frames/street.png").string());
  ASSERT_TRUE(frame.buffer);
  Harness harness("clinferfilter device=CPU output-range=auto model=" + model.string() +
                  " config=INFERENCE_PRECISION=f32 cache-dir=" + cold.folder());
  gst_harness_set_src_caps(harness.get(), gst_caps_ref(frame.caps.get()));
  std::vector<std::string> different, texts;
  const auto push = [&] {
    ASSERT_EQ(gst_harness_push(harness.get(), gst_buffer_copy(frame.buffer.get())), GST_FLOW_OK)
        << error_on(harness.get()->element, 0ms);
    const Handle<GstBuffer> out = harness.pull();
    ASSERT_TRUE(out);
    GstMapInfo map;
    ASSERT_TRUE(gst_buffer_map(out.get(), &map, GST_MAP_READ));
    std::string picture(reinterpret_cast<const char*>(map.data), map.size);
    gst_buffer_unmap(out.get(), &map);
    if (different.empty() || different.back() != picture) different.push_back(std::move(picture));
    for (std::string& text : progress_of(harness.bus())) texts.push_back(std::move(text));
  };
  const auto until = Clock::now() + kCompiling;
  do {
    push();
  } while (!HasFailure() && index_of(texts, "Compiled ") == texts.size() && Clock::now() < until);
  for (int i = 0; i < 3 && !HasFailure(); ++i) push();
  ASSERT_FALSE(HasFailure());
  EXPECT_LT(index_of(texts, "Compiled "), texts.size());
  ASSERT_LE(different.size(), 2u);
  ASSERT_EQ(different.front().size(), different.back().size());
  for (size_t i = 0; i < different.front().size(); ++i)
    ASSERT_LE(std::abs(static_cast<uint8_t>(different.front()[i]) -
                       static_cast<uint8_t>(different.back()[i])),
              1)
        << "byte " << i;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

// None where the shared data is absent.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenModels);
INSTANTIATE_TEST_SUITE_P(All, OpenModels, testing::ValuesIn(model_files()), test_name);
INSTANTIATE_TEST_SUITE_P(All, OpenPictureModels, testing::Values("espcn-x3", "fsrcnn-x2"),
                         test_name);

}  // namespace
}  // namespace clinfer
