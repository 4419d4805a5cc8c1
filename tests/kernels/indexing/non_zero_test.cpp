// NonZero: coordinates, of constants and at run time.
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

TEST(NonZero, Values) {
  for (size_t variable : {0u, 1u}) {
    const Tensor out = run("NonZero", 3, attributes({{"output_type", "i64"}}),
                           {floats({2, 3}, {0, 5, 0, -1, 0, 2})}, 1, variable)[0];
    EXPECT_EQ(out.shape(), (Shape{2, 3}));
    EXPECT_EQ(out.to_ints(), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
  }
  EXPECT_EQ(run("NonZero", 3, {}, {floats({2}, {0, 0})})[0].shape(), (Shape{1, 0}));
}

}  // namespace
}  // namespace clinfer::test
