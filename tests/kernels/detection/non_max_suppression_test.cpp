// NonMaxSuppression: selection, order, encodings, soft suppression, resulting shapes, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

// Boxes 0 and 1 overlap by 0.6, box 2 overlaps none (y0, x0, y1, x1).
const std::vector<float> kThreeBoxes{0, 0, 1, 1, 0, 0.25f, 1, 1.25f, 2, 2, 3, 3};

std::vector<Tensor> nms(int opset, const std::vector<float>& scores, int64_t most, float overlap,
                        float score,
                        std::initializer_list<std::pair<const char*, const char*>> more = {},
                        float sigma = 0, const std::vector<float>& boxes = kThreeBoxes) {
  const int64_t classes = static_cast<int64_t>(scores.size()) / 3;
  std::vector<Tensor> inputs{floats({1, 3, 4}, boxes), floats({1, classes, 3}, scores),
                             scalar(most), number(overlap), number(score)};
  if (opset >= 5) inputs.push_back(number(sigma));
  return run("NonMaxSuppression", opset, attributes(more), inputs, opset >= 5 ? 3 : 1, 2);
}

TEST(NonMaxSuppression, Selects) {
  const std::vector<Tensor> out = nms(5, {0.5f, 0.9f, 0.4f}, 3, 0.5f, 0);
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(out[0].to_ints(), (std::vector<int64_t>{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(out[1].to_floats(), (std::vector<float>{0, 0, 0.9f, 0, 0, 0.4f}));
  EXPECT_EQ(out[2].to_ints(), (std::vector<int64_t>{2}));
  EXPECT_EQ(nms(5, {0.5f, 0.9f, 0.4f}, 3, 0.65f, 0)[0].shape()[0], 3);
  EXPECT_EQ(nms(5, {0.5f, 0.9f, 0.4f}, 1, 0.65f, 0)[0].shape()[0], 1);
  EXPECT_EQ(nms(5, {0.5f, 0.9f, 0.4f}, 3, 0.65f, 0.4f)[0].shape()[0], 2);
  EXPECT_EQ(nms(5, {0.5f, 0.9f, 0.4f}, 0, 0.65f, 0)[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(nms(1, {0.5f, NAN, 0.4f}, 3, 0.65f, 0)[0].to_ints(),
            (std::vector<int64_t>{0, 0, 0, 0, 0, 2}));
}

TEST(NonMaxSuppression, OrderAndCorners) {
  const std::vector<float> scores{0.1f, 0, 0.2f, 0.4f, 0, 0.3f};
  EXPECT_EQ(nms(1, scores, 3, 0.5f, 0)[0].to_ints(),
            (std::vector<int64_t>{0, 1, 0, 0, 1, 2, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(nms(1, scores, 3, 0.5f, 0, {{"sort_result_descending", "false"}})[0].to_ints(),
            (std::vector<int64_t>{0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 1, 2}));
  const std::vector<float> mirrored{1, 1, 0, 0, 0, 1.25f, 1, 0.25f, 2, 2, 3, 3};
  EXPECT_EQ(
      nms(3, {0.5f, 0.9f, 0.4f}, 3, 0.5f, 0, {{"output_type", "i32"}}, 0, mirrored)[0].to_ints(),
      (std::vector<int64_t>{0, 0, 1, 0, 0, 2}));
  const std::vector<float> centred{0.5f, 0.5f, 1,    1,    0.75f, 0.5f,
                                   1,    1,    2.5f, 2.5f, 1,     1};  // x, y, width, height
  EXPECT_EQ(nms(3, {0.5f, 0.9f, 0.4f}, 3, 0.5f, 0, {{"box_encoding", "center"}}, 0, centred)[0]
                .shape()[0],
            2);
}

TEST(NonMaxSuppression, SoftLowersScores) {
  const std::vector<Tensor> out = nms(5, {0.8f, 0.9f, 0.75f}, 3, 0.5f, 0, {}, 0.5f);
  EXPECT_EQ(out[0].to_ints(), (std::vector<int64_t>{0, 0, 1, 0, 0, 2, 0, 0, 0}));
  EXPECT_NEAR(out[1].to_floats()[8], 0.8f * std::exp(-0.36f), 1e-5f);
}

// ---- the kernel against evaluate() -------------------------------------------------------------

struct RandomBoxes {
  int64_t images = 1, classes = 2, boxes = 50, most = 10;
  float overlap = 0.5f, score = 0.2f;
  int levels = 8;  // different scores: few levels give many ties
};

OpDesc random_desc(const RandomBoxes& r, int opset, const Attributes& a, unsigned seed,
                   std::vector<Tensor>& inputs, float sigma = 0) {
  const Tensor noise = random_tensor({r.images, r.boxes, 4}, 0, 1, seed);
  std::vector<float> boxes, scores;
  for (int64_t i = 0; i < r.images * r.boxes; ++i) {
    const float* v = noise.data<float>() + i * 4;
    // Corners in any order; some boxes are empty, one has invalid numbers.
    boxes.insert(boxes.end(), {v[0], v[1], v[0] + 0.4f * v[2] - 0.1f,
                               i % 11 == 5 ? v[1] : v[1] + 0.4f * v[3] - 0.1f});
    if (i == 7) boxes[28] = NAN;
  }
  for (int64_t v :
       random_ints(ElementType::i64, {r.images * r.classes * r.boxes}, -1, r.levels, seed + 1)
           .to_ints())
    scores.push_back(v < 0 ? NAN : static_cast<float>(v) / static_cast<float>(r.levels));
  inputs = {floats({r.images, r.boxes, 4}, boxes), floats({r.images, r.classes, r.boxes}, scores),
            scalar(r.most), number(r.overlap), number(r.score)};
  if (opset >= 5) inputs.push_back(number(sigma));
  return make_desc("NonMaxSuppression", opset, a, inputs, {false, false, true, true, true, true},
                   opset >= 5 ? 3 : 1);
}

void check_random(const RandomBoxes& r, int opset, const Attributes& a, unsigned seed,
                  const DeviceTraits& traits = gpu_traits()) {
  std::vector<Tensor> inputs;
  OpDesc desc = random_desc(r, opset, a, seed, inputs);
  if (seed % 2 != 0) {
    for (size_t i : {0, 1}) desc.inputs[i] = with_gaps(desc.inputs[i]);
    desc.inputs[1].type = ElementType::f16;
  }
  check_op(desc, inputs, {}, &traits);
}

TEST(NonMaxSuppression, Kernel) {
  for (unsigned seed : {1, 2}) check_random({.images = 2}, 9, {}, seed);
}

TEST(NonMaxSuppression, KernelOfSmallGroups) {
  check_random({.images = 2}, 9, {}, 2, tiny_traits());
}

TEST(NonMaxSuppression, KernelInAllForms) {
  const Attributes center = attributes({{"box_encoding", "center"}, {"output_type", "i32"}});
  const Attributes by_list = attributes({{"sort_result_descending", "false"}});
  unsigned seed = 10;
  for (int opset : {1, 3, 4, 5, 9}) {
    check_random({.images = 2, .classes = 3}, opset, by_list, ++seed, tiny_traits());
    check_random({.images = 2, .classes = 3}, opset, center, ++seed, tiny_traits());
  }
  check_random({.overlap = 0, .score = -1}, 9, {}, ++seed, tiny_traits());
  check_random({.overlap = 1, .score = 0}, 9, {}, ++seed, tiny_traits());
  check_random({.score = 1}, 9, {}, ++seed, tiny_traits());  // nothing is found
  check_random({.most = 1}, 9, by_list, ++seed, tiny_traits());
  check_random({.classes = 1, .boxes = 1}, 9, {}, ++seed, tiny_traits());
}

TEST(NonMaxSuppression, KernelOfManyBoxes) {
  DeviceTraits small = gpu_traits();  // lists are sorted in many parts
  small.local_memory = 9 << 10;
  check_random({.boxes = 3000, .most = 3000, .levels = 100000}, 9, {}, 40, small);
  check_random({.classes = 1, .boxes = 5000, .most = 200, .score = 0}, 9, {}, 41);
  check_random({.images = 2, .classes = 80, .boxes = 400, .most = 20, .levels = 1000}, 9,
               attributes({{"sort_result_descending", "false"}}), 42);
}

TEST(NonMaxSuppression, WhatTheKernelLeavesToTheHost) {
  const KernelFamily& family = *find_op("NonMaxSuppression", 9)->families.at(0);
  std::vector<Tensor> inputs;
  OpDesc desc = random_desc({}, 9, {}, 1, inputs);
  EXPECT_EQ(family.reject(desc, gpu_traits()), "");
  DeviceTraits cpu = gpu_traits();
  cpu.is_cpu = true;
  EXPECT_TRUE(says(family.reject(desc, cpu), "a CPU is faster at it on the host"));
  EXPECT_TRUE(says(family.reject(random_desc({}, 9, {}, 1, inputs, 0.5f), gpu_traits()),
                   "each box that is selected changes the scores of all others"));
  desc.constants[3] = {};
  EXPECT_TRUE(says(family.reject(desc, gpu_traits()), "a threshold is not constant"));
}

TEST(NonMaxSuppression, Refuses) {
  const Tensor boxes = floats({1, 3, 4}, kThreeBoxes);
  EXPECT_TRUE(says(error_of("NonMaxSuppression", 5, {}, {boxes, counted({1, 1, 2})}, 3, 2),
                   "boxes [1,3,4] and scores [1,1,2] do not fit"));
  EXPECT_TRUE(says(error_of("NonMaxSuppression", 5, {}, {boxes, counted({2, 1, 3})}, 3, 2),
                   "boxes [1,3,4] and scores [2,1,3] do not fit"));
  EXPECT_TRUE(says(error_of("NonMaxSuppression", 5, attributes({{"box_encoding", "polar"}}),
                            {boxes, counted({1, 1, 3})}, 3, 2),
                   "box_encoding \"polar\""));
  EXPECT_TRUE(
      says(error_of("NonMaxSuppression", 5, {}, {boxes, counted({1, 1, 3}), ints({1, 2})}, 3, 2),
           "max_output_boxes_per_class must be one number, has 2"));
}

}  // namespace
}  // namespace clinfer::test
