// Inverse: values computed by hand, pivots, transposed.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Inverse, Values) {
  // The first one needs a pivot.
  const Tensor two = floats({2, 2, 2}, {0, 2, 4, 0, 1, 2, 3, 4});
  EXPECT_EQ(run("Inverse", 14, {}, {two})[0].to_floats(),
            (std::vector<float>{0, 0.25f, 0.5f, 0, -2, 1, 1.5f, -0.5f}));
  EXPECT_EQ(run("Inverse", 14, attributes({{"adjoint", "true"}}), {two})[0].to_floats(),
            (std::vector<float>{0, 0.5f, 0.25f, 0, -2, 1.5f, 1, -0.5f}));
  for (const float value : run("Inverse", 14, {}, {floats({2, 2}, {1, 2, 2, 4})})[0].to_floats())
    EXPECT_FALSE(std::isfinite(value));
}

TEST(Inverse, Refuses) {
  EXPECT_TRUE(says(error_of("Inverse", 14, {}, {floats({1, 2}, {1, 2})}),
                   "matrices of the shape [1,2] are not square"));
  EXPECT_TRUE(says(error_of("Inverse", 14, {}, {floats({1}, {1})}),
                   "the matrices has the shape [1], it must have 2 to 16 dimensions"));
  EXPECT_TRUE(
      says(error_of("Inverse", 14, {}, {ints({1, 1}, {1})}), "the matrices are not of floats"));
}

}  // namespace
}  // namespace clinfer::test
