// CumSum: directions, axes, wrapping integers.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

std::vector<float> sums(const char* exclusive, const char* reverse, int64_t axis) {
  return run("CumSum", 3, attributes({{"exclusive", exclusive}, {"reverse", reverse}}),
             {floats({2, 3}, {1, 2, 3, 4, 5, 6}), scalar(axis)})[0]
      .to_floats();
}

TEST(CumSum, Values) {
  EXPECT_EQ(sums("false", "false", 1), (std::vector<float>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(sums("true", "false", -1), (std::vector<float>{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(sums("false", "true", 1), (std::vector<float>{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(sums("true", "true", 0), (std::vector<float>{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(run("CumSum", 3, {}, {ints({1, INT64_MAX, 1})})[0].to_ints(),
            (std::vector<int64_t>{1, INT64_MIN, INT64_MIN + 1}));
  EXPECT_TRUE(says(error_of("CumSum", 3, {}, {counted({2, 3}), scalar(2)}),
                   "axis 2 is out of range for 2 dimensions"));
}

}  // namespace
}  // namespace clinfer::test
