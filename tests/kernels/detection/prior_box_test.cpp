// PriorBox and PriorBoxClustered: boxes computed by hand.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

std::vector<float> priors(const char* type, int opset, const Attributes& a,
                          std::vector<int64_t> feature, std::vector<int64_t> image) {
  return run(type, opset, a, {ints(feature), ints(image)}, 1, 0)[0].to_floats();
}

void expect_priors(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6f) << i;
}

TEST(PriorBox, SizesAndRatios) {
  // One cell in the middle of 100 x 50: 20, sqrt(20 * 45) = 30, 20 * sqrt(4) x 20 / sqrt(4).
  const Attributes a = attributes({{"min_size", "20"},
                                   {"max_size", "45"},
                                   {"aspect_ratio", "4"},
                                   {"flip", "false"},
                                   {"offset", "0.5"},
                                   {"variance", "0.1,0.2,0.3,0.4"}});
  expect_priors(priors("PriorBox", 1, a, {1, 1}, {50, 100}),
                {0.4f, 0.3f, 0.6f, 0.7f, 0.35f, 0.2f, 0.65f, 0.8f, 0.3f, 0.4f, 0.7f, 0.6f,
                 0.1f, 0.2f, 0.3f, 0.4f, 0.1f,  0.2f, 0.3f,  0.4f, 0.1f, 0.2f, 0.3f, 0.4f});
  Attributes swapped = a;
  swapped.set("min_max_aspect_ratios_order", "false");
  const std::vector<float> boxes = priors("PriorBox", 8, swapped, {1, 1}, {50, 100});
  EXPECT_NEAR(boxes[4], 0.3f, 1e-6f);
  EXPECT_NEAR(boxes[8], 0.35f, 1e-6f);
}

TEST(PriorBox, StepOffsetClipAndFlip) {
  const Attributes a = attributes({{"min_size", "40"},
                                   {"aspect_ratio", "2,2,1"},
                                   {"flip", "true"},
                                   {"clip", "true"},
                                   {"step", "16"},
                                   {"offset", "0"}});
  const std::vector<float> boxes = priors("PriorBox", 1, a, {2, 2}, {32, 32});
  ASSERT_EQ(boxes.size(), 2u * 4 * 3 * 4);  // 1, 2 and 1/2: repeated ratios are ignored
  expect_priors({boxes.begin(), boxes.begin() + 4}, {0, 0, 0.625f, 0.625f});
  expect_priors({boxes.begin() + 12 * 3, boxes.begin() + 12 * 3 + 4}, {0, 0, 1, 1});
}

TEST(PriorBox, Density) {
  const Attributes a =
      attributes({{"fixed_size", "32"}, {"density", "2"}, {"step", "64"}, {"offset", "0.5"}});
  const std::vector<float> boxes = priors("PriorBox", 1, a, {1, 1}, {64, 64});
  ASSERT_EQ(boxes.size(), 2u * 4 * 4);
  expect_priors({boxes.begin(), boxes.begin() + 8}, {8 / 64.f, 8 / 64.f, 40 / 64.f, 40 / 64.f,
                                                     24 / 64.f, 8 / 64.f, 56 / 64.f, 40 / 64.f});
}

TEST(PriorBoxClustered, Values) {
  const Attributes a = attributes({{"width", "20,10"},
                                   {"height", "10,10"},
                                   {"step", "0"},
                                   {"step_w", "50"},
                                   {"step_h", "25"},
                                   {"offset", "0.5"},
                                   {"variance", "0.1"}});
  const std::vector<float> boxes = priors("PriorBoxClustered", 1, a, {1, 2}, {50, 100});
  ASSERT_EQ(boxes.size(), 2u * 2 * 2 * 4);
  expect_priors({boxes.begin() + 8, boxes.begin() + 16},
                {0.65f, 0.15f, 0.85f, 0.35f, 0.7f, 0.15f, 0.8f, 0.35f});
  EXPECT_EQ(boxes[31], 0.1f);
}

TEST(PriorBox, Refuses) {
  const auto refused = [](const char* type,
                          std::initializer_list<std::pair<const char*, const char*>> a,
                          std::vector<int64_t> feature) {
    return error_of(type, 1, attributes(a), {ints(feature), ints({32, 32})}, 1, 0);
  };
  EXPECT_TRUE(says(refused("PriorBox", {{"min_size", "1"}}, {0, 4}),
                   "the feature map's size must be height and width, is [0,4]"));
  EXPECT_TRUE(says(refused("PriorBox", {{"min_size", "1"}}, {4}),
                   "the feature map's size must be height and width, is [4]"));
  EXPECT_TRUE(says(refused("PriorBox", {{"min_size", "1"}}, {1 << 30, 1 << 30}),
                   "a tensor of more than 2^31 - 1 elements"));
  EXPECT_TRUE(says(refused("PriorBox", {{"min_size", "1"}, {"variance", "1,2"}}, {4, 4}),
                   "variance must have 1 or 4 entries, has 2"));
  EXPECT_TRUE(says(refused("PriorBox", {{"min_size", "1"}, {"aspect_ratio", "-2"}}, {4, 4}),
                   "an aspect_ratio is not positive"));
  EXPECT_TRUE(says(refused("PriorBox", {{"fixed_size", "1"}, {"density", "0"}}, {4, 4}),
                   "density must be 1 to 1024"));
  EXPECT_TRUE(says(refused("PriorBox", {{"fixed_size", "1,2"}, {"density", "1"}}, {4, 4}),
                   "density has fewer entries than fixed_size"));
  for (const char* size : {"1e30", "inf", "-1", "nan"})
    EXPECT_TRUE(says(refused("PriorBox", {{"fixed_size", size}, {"density", "1"}}, {4, 4}),
                     "a fixed_size is not from 0 to 16777216"))
        << size;
  EXPECT_TRUE(says(refused("PriorBoxClustered", {{"width", "1,2"}, {"height", "1"}}, {4, 4}),
                   "width and height differ in length"));
}

}  // namespace
}  // namespace clinfer::test
