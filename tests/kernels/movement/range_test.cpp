// Range: directions, types, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Tensor range(const char* type, const Tensor& start, const Tensor& stop, const Tensor& step) {
  return run("Range", 4, attributes({{"output_type", type}}), {start, stop, step}, 1, 0)[0];
}

TEST(Range, Values) {
  EXPECT_EQ(range("i64", scalar(2), scalar(7), scalar(2)).to_ints(),
            (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(range("i32", scalar(3), scalar(0), scalar(-1)).to_ints(),
            (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(range("f32", number(1), number(2), number(0.25f)).to_floats(),
            (std::vector<float>{1, 1.25f, 1.5f, 1.75f}));
  EXPECT_EQ(range("f32", scalar(2), scalar(4), scalar(1)).to_floats(), (std::vector<float>{2, 3}));
  EXPECT_EQ(range("i64", scalar(5), scalar(5), scalar(1)).shape(), (Shape{0}));
  EXPECT_EQ(range("i64", scalar(5), scalar(9), scalar(-1)).shape(), (Shape{0}));
  EXPECT_EQ(run("Range", 1, {}, {scalar(0), scalar(3), scalar(1)}, 1, 0)[0].type(),
            ElementType::i64);
}

TEST(Range, Refuses) {
  const Attributes type = attributes({{"output_type", "i64"}});
  EXPECT_TRUE(says(error_of("Range", 4, type, {scalar(0), scalar(3), scalar(0)}, 1, 0),
                   "start, stop and step must be finite and the step not 0"));
  EXPECT_TRUE(says(error_of("Range", 4, type, {scalar(0), scalar(INT64_MAX), scalar(1)}, 1, 0),
                   "a range of more than 2^26 numbers"));
  EXPECT_TRUE(says(error_of("Range", 4, type, {scalar(0), number(NAN), scalar(1)}, 1, 0),
                   "start, stop and step must be finite and the step not 0"));
  EXPECT_TRUE(says(error_of("Range", 4, type, {scalar(0), scalar(3), scalar(1)}, 1, 3),
                   "start (input 0) must be constant"));
}

TEST(Eye, Values) {
  const Attributes type = attributes({{"output_type", "f32"}});
  EXPECT_EQ(run("Eye", 9, type, {scalar(2), scalar(3), scalar(1)}, 1, 0)[0].to_floats(),
            (std::vector<float>{0, 1, 0, 0, 0, 1}));
  const Tensor batch = run("Eye", 9, type, {scalar(2), scalar(1), scalar(-1), ints({2})}, 1, 0)[0];
  EXPECT_EQ(batch.shape(), (Shape{2, 2, 1}));
  EXPECT_EQ(batch.to_floats(), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_TRUE(says(error_of("Eye", 9, type, {scalar(-1), scalar(1), scalar(0)}, 1, 0),
                   "a dimension is negative in [-1,1]"));
}

}  // namespace
}  // namespace clinfer::test
