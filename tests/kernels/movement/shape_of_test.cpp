// ShapeOf.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(ShapeOf, Values) {
  const std::vector<Tensor> old = run("ShapeOf", 1, {}, {counted({2, 3, 4})});
  EXPECT_EQ(old[0].type(), ElementType::i64);
  EXPECT_EQ(old[0].to_ints(), (std::vector<int64_t>{2, 3, 4}));
  const std::vector<Tensor> out =
      run("ShapeOf", 3, attributes({{"output_type", "i32"}}), {counted({5, 0})});
  EXPECT_EQ(out[0].type(), ElementType::i32);
  EXPECT_EQ(out[0].to_ints(), (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(run("ShapeOf", 3, {}, {floats({}, {1})})[0].shape(), (Shape{0}));
  EXPECT_TRUE(says(error_of("ShapeOf", 3, attributes({{"output_type", "f32"}}), {counted({2})}),
                   "attribute output_type must be i32 or i64"));
}

}  // namespace
}  // namespace clinfer::test
