// NonMaxSuppression: selection, order, encodings, soft suppression, the shapes that come out,
// refusals.
#include <cmath>

#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

// Boxes 0 and 1 overlap by 0.6, box 2 stands alone (y0, x0, y1, x1).
const std::vector<float> kBoxes{0, 0, 1, 1, 0, 0.25f, 1, 1.25f, 2, 2, 3, 3};

Tensor number(float v) { return floats({}, {v}); }

std::vector<Tensor> nms(int opset, const std::vector<float>& scores, int64_t most, float overlap,
                        float score,
                        std::initializer_list<std::pair<const char*, const char*>> more = {},
                        float sigma = 0, const std::vector<float>& boxes = kBoxes) {
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

TEST(NonMaxSuppression, Refuses) {
  const Tensor boxes = floats({1, 3, 4}, kBoxes);
  EXPECT_NE(error_of("NonMaxSuppression", 5, {}, {boxes, counted({1, 1, 2})}, 3, 2), "");
  EXPECT_NE(error_of("NonMaxSuppression", 5, {}, {boxes, counted({2, 1, 3})}, 3, 2), "");
  EXPECT_NE(error_of("NonMaxSuppression", 5, attributes({{"box_encoding", "polar"}}),
                     {boxes, counted({1, 1, 3})}, 3, 2),
            "");
  EXPECT_NE(error_of("NonMaxSuppression", 5, {}, {boxes, counted({1, 1, 3}), ints({1, 2})}, 3, 2),
            "");
}

}  // namespace
}  // namespace clinfer::test
