// Split and VariadicSplit: parts, views, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Split, Values) {
  const std::vector<Tensor> out =
      run("Split", 1, attributes({{"num_splits", "2"}}), {counted({2, 4}), scalar(-1)}, 2);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].to_floats(), (std::vector<float>{0, 1, 4, 5}));
  EXPECT_EQ(out[1].to_floats(), (std::vector<float>{2, 3, 6, 7}));
  const std::vector<Tensor> parts =
      run("VariadicSplit", 1, {}, {counted({1, 5}), scalar(1), ints({1, -1, 0, 2})}, 4);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[1].to_floats(), (std::vector<float>{1, 2}));
  EXPECT_EQ(parts[2].shape(), (Shape{1, 0}));
  EXPECT_EQ(parts[3].to_floats(), (std::vector<float>{3, 4}));
}

TEST(Split, Views) {
  check_views("Split", 1, attributes({{"num_splits", "3"}}), {counted({2, 6, 3, 4}), scalar(1)}, 3);
  check_views("VariadicSplit", 1, {}, {counted({2, 6, 3, 4}), scalar(-1), ints({1, 3})}, 2);
}

TEST(Split, Refuses) {
  for (const char* parts : {"0", "-1", "4", "99999999999"})
    EXPECT_TRUE(says(
        error_of("Split", 1, attributes({{"num_splits", parts}}), {counted({2, 6}), scalar(1)}),
        std::string("into ") + parts + " equal parts"))
        << parts;
  EXPECT_TRUE(
      says(error_of("Split", 1, attributes({{"num_splits", "2"}}), {counted({2, 6}), scalar(2)}),
           "axis 2 is out of range for 2 dimensions"));
  for (const auto& lengths : std::vector<std::vector<int64_t>>{
           {7}, {5}, {-1, -1}, {7, -1}, {-2, 8}, {INT64_MAX, INT64_MAX, -1}})
    EXPECT_TRUE(says(error_of("VariadicSplit", 1, {}, {counted({6}), scalar(0), ints(lengths)}),
                     "cannot split dimension 0 of [6] into lengths " + to_string(lengths)))
        << to_string(lengths);
}

}  // namespace
}  // namespace clinfer::test
