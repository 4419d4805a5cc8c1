// Transpose: orders, the view, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

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
  const auto refused = [](const std::vector<int64_t>& order) {
    return error_of("Transpose", 1, {}, {counted({2, 3}), ints(order)});
  };
  EXPECT_TRUE(says(refused({0}), "the order has 1 entries for 2 dimensions"));
  EXPECT_TRUE(says(refused({0, 0}), "the order [0,0] names a dimension twice"));
  EXPECT_TRUE(says(refused({0, 2}), "order entry 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(refused({0, -5}), "order entry -5 is out of range for 2 dimensions"));
}

}  // namespace
}  // namespace clinfer::test
