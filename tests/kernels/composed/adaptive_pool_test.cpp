// AdaptiveAvgPool, AdaptiveMaxPool: values computed by hand, equal and unequal windows, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

TEST(AdaptivePool, Averages) {
  EXPECT_EQ(run("AdaptiveAvgPool", 8, {}, {counted({1, 1, 4}), ints({2})})[0].to_floats(),
            (Floats{0.5f, 2.5f}));
  // Windows 0-1, 1-3, 3-4 of five.
  const std::vector<float> three =
      run("AdaptiveAvgPool", 8, {}, {counted({1, 1, 5}), ints({3})})[0].to_floats();
  EXPECT_NEAR(three[0], 0.5f, 1e-6);
  EXPECT_NEAR(three[1], 2, 1e-6);
  EXPECT_NEAR(three[2], 3.5f, 1e-6);
  const Tensor larger = run("AdaptiveAvgPool", 8, {}, {counted({1, 2, 2, 3}), ints({4, 3})})[0];
  EXPECT_EQ(larger.shape(), (Shape{1, 2, 4, 3}));
  EXPECT_EQ(larger.to_floats()[5], 2);
}

TEST(AdaptivePool, MaximaAndTheirPlaces) {
  const auto pooled = [](const Tensor& data, const Tensor& size) {
    return run("AdaptiveMaxPool", 8, attributes({{"index_element_type", "i32"}}), {data, size}, 2);
  };
  const auto equal = pooled(floats({1, 1, 4}, {1, 3, 2, 0}), ints({2}));
  EXPECT_EQ(equal[0].to_floats(), (Floats{3, 2}));
  EXPECT_EQ(equal[1].to_ints(), (Ints{1, 2}));
  // Rows 0-1 and 1-2 of three, columns 0-1 and 1-2.
  const auto uneven = pooled(floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 0, 7, 6, 5}), ints({2, 2}));
  EXPECT_EQ(uneven[0].to_floats(), (Floats{5, 5, 7, 6}));
  EXPECT_EQ(uneven[1].to_ints(), (Ints{4, 4, 6, 7}));
  EXPECT_EQ(uneven[1].type(), ElementType::i32);
}

TEST(AdaptivePool, Refuses) {
  EXPECT_TRUE(says(error_of("AdaptiveAvgPool", 8, {}, {counted({1, 1, 4}), ints({2, 2})}),
                   "an output of 2 dimensions for the data [1,1,4]"));
  EXPECT_TRUE(says(error_of("AdaptiveAvgPool", 8, {}, {counted({1, 1, 4}), ints({0})}),
                   "no output of size 0 from [1,1,4]"));
  EXPECT_TRUE(says(error_of("AdaptiveMaxPool", 8, {}, {counted({4, 4}), ints({2})}, 2),
                   "the data has the shape [4,4], it must have 3 to 5 dimensions"));
  // No table of gigabytes.
  const auto large = [](const char* type) {
    return error_of(type, 8, {}, {counted({1, 1, 7}), ints({1 << 24})}, 2);
  };
  EXPECT_TRUE(says(large("AdaptiveAvgPool"), "needs a table of the shape [7,16777216]"));
  EXPECT_TRUE(says(large("AdaptiveMaxPool"), "the windows hold 33554432 places"));
}

}  // namespace
}  // namespace clinfer::test
