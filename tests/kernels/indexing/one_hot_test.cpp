// OneHot: axes, indices out of range, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Tensor one_hot(const char* axis, const Tensor& indices, int64_t depth,
               std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Attributes a = attributes(more);
  a.set("axis", axis);
  return run("OneHot", 1, a, {indices, scalar(depth), floats({}, {2}), floats({}, {-1})})[0];
}

TEST(OneHot, Values) {
  EXPECT_EQ(one_hot("-1", ints({1, 5, -1}), 2).to_floats(),
            (std::vector<float>{-1, 2, -1, -1, -1, -1}));
  EXPECT_EQ(one_hot("0", ints({1, 0}), 3).to_floats(), (std::vector<float>{-1, 2, 2, -1, -1, -1}));
  EXPECT_EQ(one_hot("1", ints({2, 2}, {0, 1, 1, 0}), 2).to_floats(),
            (std::vector<float>{2, -1, -1, 2, -1, 2, 2, -1}));
  EXPECT_EQ(one_hot("-1", ints({-1}), 2, {{"negative_indices_mode", "normalize"}}).to_floats(),
            (std::vector<float>{-1, 2}));
}

TEST(OneHot, Refuses) {
  const Tensor on = floats({}, {1}), two = floats({2}, {1, 0});
  EXPECT_TRUE(says(error_of("OneHot", 1, {}, {ints({1}), scalar(-1), on, on}), "depth is -1"));
  EXPECT_TRUE(says(error_of("OneHot", 1, {}, {ints({1}), scalar(2), two, on}),
                   "on_value and off_value must be one number each"));
  EXPECT_TRUE(says(error_of("OneHot", 1, {}, {floats({1}, {1}), scalar(2), on, on}),
                   "the indices must be integers"));
  EXPECT_TRUE(says(error_of("OneHot", 1, {}, {ints({1}), scalar(INT64_MAX), on, on}),
                   "a tensor of more than 2^31 - 1 elements"));
  EXPECT_TRUE(
      says(error_of("OneHot", 1, attributes({{"axis", "2"}}), {ints({1}), scalar(2), on, on}),
           "axis 2 is out of range for 2 dimensions"));
}

}  // namespace
}  // namespace clinfer::test
