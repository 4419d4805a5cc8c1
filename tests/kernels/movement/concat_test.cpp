// Concat: shapes and values; it has no kernel.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Concat, Values) {
  const std::vector<Tensor> out = run("Concat", 1, attributes({{"axis", "-1"}}),
                                      {floats({2, 1}, {1, 2}), floats({2, 2}, {3, 4, 5, 6})}, 1, 2);
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(out[0].to_floats(), (std::vector<float>{1, 3, 4, 2, 5, 6}));
  const std::vector<Tensor> middle =
      run("Concat", 1, attributes({{"axis", "1"}}),
          {counted({2, 1, 2}), counted({2, 0, 2}), counted({2, 2, 2})}, 1, 3);
  EXPECT_EQ(middle[0].to_floats(), (std::vector<float>{0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 6, 7}));
  const std::vector<Tensor> integers =
      run("Concat", 1, attributes({{"axis", "0"}}), {ints({1, 2}), ints({3})}, 1, 0);
  EXPECT_EQ(integers[0].to_ints(), (std::vector<int64_t>{1, 2, 3}));
}

TEST(Concat, Refuses) {
  const Attributes axis = attributes({{"axis", "1"}});
  EXPECT_TRUE(says(error_of("Concat", 1, axis, {counted({2, 3}), counted({3, 3})}, 1, 2),
                   "inputs of shapes [2,3] and [3,3] cannot be joined along axis 1"));
  EXPECT_TRUE(says(error_of("Concat", 1, axis, {counted({2, 3}), counted({2, 3, 1})}, 1, 2),
                   "inputs of shapes [2,3] and [2,3,1] cannot be joined along axis 1"));
  EXPECT_TRUE(says(error_of("Concat", 1, axis, {counted({2}), counted({2})}, 1, 2),
                   "axis 1 is out of range for 1 dimensions"));
  EXPECT_TRUE(says(error_of("Concat", 1, axis, {counted({2, 3}), ints({2, 1}, {1, 2})}, 1, 2),
                   "inputs 0 and 1 differ in element type"));
  EXPECT_TRUE(says(error_of("Concat", 1, axis, {}, 1, 0), "has no input"));
}

}  // namespace
}  // namespace clinfer::test
