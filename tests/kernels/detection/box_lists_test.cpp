// The operations that sort and suppress boxes: removal of unused rows, and speed on this device
// compared with evaluate().
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kernels/shape_util.h"
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

TEST(BoxLists, FilledUpRowsAreCutOff) {
  const Tensor some = trim_unused_rows(floats({3, 2}, {0, -1, 5, 6, -1, -1}));
  EXPECT_EQ(some.shape(), (Shape{2, 2}));
  EXPECT_EQ(some.to_floats(), (std::vector<float>{0, -1, 5, 6}));
  EXPECT_EQ(trim_unused_rows(ints({2, 1}, {-1, -1})).shape(), (Shape{0, 1}));
  EXPECT_EQ(trim_unused_rows(ints({2, 2}, {0, 1, 2, 3})).shape(), (Shape{2, 2}));
  EXPECT_EQ(trim_unused_rows(ints({-1})).shape(), (Shape{1}));  // no rows
}

// Objects in a picture, each covered by several boxes, most with low scores.
struct Scene {
  explicit Scene(int64_t count)
      : boxes(random_tensor({1, count, 4}, 0, 1, 1)),
        scores(random_tensor({1, 1, count}, 0, 1, 2)) {
    float *b = boxes.mutable_data<float>(), *s = scores.mutable_data<float>();
    for (int64_t i = 0; i < count; ++i, b += 4) {
      const float object = static_cast<float>(i * 7919 % 64);
      const float x = std::fmod(object, 8.0f) / 8 + 0.02f * b[0],
                  y = std::floor(object / 8) / 8 + 0.02f * b[1];
      const float width = 0.08f + 0.02f * b[2], height = 0.08f + 0.02f * b[3];
      b[0] = x, b[1] = y, b[2] = x + width, b[3] = y + height;
      s[i] = s[i] * s[i];
    }
  }
  Tensor boxes, scores;
};

struct ListCase {
  std::string name;
  OpDesc desc;
  std::vector<Tensor> inputs;
};

std::vector<ListCase> cases(int64_t count) {
  const Scene scene(count);
  std::vector<ListCase> cases;
  const auto add = [&](const char* type, const Attributes& a, std::vector<Tensor> inputs,
                       std::vector<bool> constant, size_t outputs) {
    OpDesc desc = make_desc(type, 4, a, inputs, constant, outputs);
    cases.push_back({type, std::move(desc), std::move(inputs)});
  };
  std::vector<float> two_classes, priors = scene.boxes.to_floats();
  for (float score : scene.scores.to_floats()) two_classes.insert(two_classes.end(), {0, score});
  priors.resize(priors.size() * 2, 0.1f);
  add("DetectionOutput",
      attributes({{"num_classes", "2"},
                  {"top_k", "400"},
                  {"keep_top_k", "200"},
                  {"nms_threshold", "0.45"},
                  {"confidence_threshold", "0.01"},
                  {"normalized", "true"},
                  {"code_type", "caffe.PriorBoxParameter.CENTER_SIZE"}}),
      {Tensor::allocate(ElementType::f32, {1, count * 4}), floats({1, count * 2}, two_classes),
       floats({1, 2, count * 4}, priors)},
      {false, false, true}, 1);
  add("NonMaxSuppression", {},
      {scene.boxes, scene.scores, scalar(200), floats({}, {0.5f}), floats({}, {0.1f})},
      {false, false, true, true, true}, 1);
  const int64_t cells = count / 10;
  add("Proposal",
      attributes({{"base_size", "16"},
                  {"pre_nms_topn", "6000"},
                  {"post_nms_topn", "300"},
                  {"nms_thresh", "0.7"},
                  {"feat_stride", "16"},
                  {"min_size", "4"},
                  {"ratio", "1"},
                  {"scale", "1,2,3,4,5,6,7,8,9,10"}}),
      {random_tensor({1, 20, 10, cells / 10}, 0, 1, 3),
       random_tensor({1, 40, 10, cells / 10}, -0.5f, 0.5f, 4),
       floats({3}, {160, 1.6f * static_cast<float>(cells), 1})},
      {}, 2);
  return cases;
}

// Disabled because timings need an idle machine; prints them. On a GPU the kernels must be faster
// than the host from 1,000 boxes on.
TEST(BoxLists, DISABLED_Speed) {
  DeviceTraits traits = device_traits();
  const bool is_gpu = !traits.is_cpu;
  traits.is_cpu = false;
  std::printf("%-18s %8s %12s %12s\n", "", "boxes", "kernels us", "host us");
  for (int64_t count : {100, 1000, 10000})
    for (const ListCase& c : cases(count)) {
      double host = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 10; ++i) {
        const auto start = std::chrono::steady_clock::now();
        reference(c.desc, c.inputs);
        host = std::min(host, std::chrono::duration<double, std::micro>(
                                  std::chrono::steady_clock::now() - start)
                                  .count());
      }
      const double device = kernel_us(c.desc, c.inputs, traits);
      std::printf("%-18s %8d %12.1f %12.1f\n", c.name.c_str(), static_cast<int>(count), device,
                  host);
      if (is_gpu && count >= 1000) {
        EXPECT_LT(device, host) << c.name;
      }
    }
}

}  // namespace
}  // namespace clinfer::test
