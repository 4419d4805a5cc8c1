// Transpose: orders, the view, refusals.
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

TEST(Transpose, Values) {
  const std::vector<Tensor> out = run("Transpose", 1, {}, {counted({2, 3}), ints({1, 0})});
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(out[0].to_floats(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run("Transpose", 1, {}, {counted({2, 3, 4}), ints({})})[0].shape(), (Shape{4, 3, 2}));
}

TEST(Transpose, Views) {
  check_views("Transpose", 1, {}, {counted({2, 3, 4, 5}), ints({0, 2, 3, 1})});
  check_views("Transpose", 1, {}, {counted({2, 3, 4, 5}), ints({3, 2, 1, 0})});
  check_views("Transpose", 1, {}, {counted({2, 3, 4}), ints({2, 0, 1})});
}

TEST(Transpose, Refuses) {
  for (const auto& order : std::vector<std::vector<int64_t>>{{0}, {0, 0}, {0, 2}, {0, -5}})
    EXPECT_NE(error_of("Transpose", 1, {}, {counted({2, 3}), ints(order)}), "");
}

}  // namespace
}  // namespace clinfer::test
