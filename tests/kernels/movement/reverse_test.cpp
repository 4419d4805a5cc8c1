// Reverse and ReverseSequence.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Reverse, ValuesAndViews) {
  const Attributes index = attributes({{"mode", "index"}}), mask = attributes({{"mode", "mask"}});
  EXPECT_EQ(run("Reverse", 1, index, {counted({2, 3}), ints({-1})})[0].to_floats(),
            (std::vector<float>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(run("Reverse", 1, mask, {counted({2, 3}), ints({1, 0})})[0].to_floats(),
            (std::vector<float>{3, 4, 5, 0, 1, 2}));
  check_views("Reverse", 1, index, {counted({2, 3, 4, 5}), ints({1, 3})});
  EXPECT_TRUE(says(error_of("Reverse", 1, index, {counted({2, 3}), ints({2})}),
                   "axis 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(error_of("Reverse", 1, mask, {counted({2, 3}), ints({1})}),
                   "the mask has 1 entries for 2 dimensions"));
}

TEST(ReverseSequence, Values) {
  const Attributes a = attributes({{"batch_axis", "0"}, {"seq_axis", "-1"}});
  EXPECT_EQ(run("ReverseSequence", 1, a, {counted({2, 3}), ints({2, 3})})[0].to_floats(),
            (std::vector<float>{1, 0, 2, 5, 4, 3}));
  EXPECT_TRUE(says(error_of("ReverseSequence", 1, a, {counted({2, 3}), ints({-5, 99})}),
                   "a length is -5, which is out of range"));
  EXPECT_TRUE(says(error_of("ReverseSequence", 1, a, {counted({2, 3}), ints({1})}),
                   "the lengths have the shape [1] for [2,3]"));
  EXPECT_TRUE(
      says(error_of("ReverseSequence", 1, attributes({{"batch_axis", "1"}, {"seq_axis", "1"}}),
                    {counted({2, 3}), ints({1, 1, 1})}),
           "batch_axis and seq_axis are the same"));
}

}  // namespace
}  // namespace clinfer::test
