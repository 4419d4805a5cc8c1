// Slice and StridedSlice: bounds, steps, masks, views, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

std::vector<float> slice1(int64_t size, int64_t start, int64_t stop, int64_t step) {
  return run("Slice", 8, {}, {counted({size}), ints({start}), ints({stop}), ints({step})})[0]
      .to_floats();
}

TEST(Slice, Bounds) {
  EXPECT_EQ(slice1(5, 1, 4, 2), (std::vector<float>{1, 3}));
  EXPECT_EQ(slice1(5, -2, 99, 1), (std::vector<float>{3, 4}));
  EXPECT_EQ(slice1(5, -1, INT64_MIN, -2), (std::vector<float>{4, 2, 0}));
  EXPECT_EQ(slice1(5, 4, 0, -1), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(slice1(5, 3, 3, 1), std::vector<float>{});
  EXPECT_EQ(slice1(5, -9, -99, -1), std::vector<float>{0});  // numpy: nothing
  EXPECT_EQ(slice1(5, -9, 0, -1), std::vector<float>{});
  EXPECT_EQ(slice1(5, 9, 3, -1), std::vector<float>{4});
  EXPECT_EQ(slice1(0, -1, -9, -1), std::vector<float>{});
  EXPECT_EQ(slice1(5, 0, INT64_MAX, INT64_MAX), (std::vector<float>{0}));
  EXPECT_EQ(slice1(5, INT64_MAX, INT64_MIN, INT64_MIN), (std::vector<float>{4}));
  EXPECT_EQ(slice1(0, 0, 5, 1), std::vector<float>{});
}

TEST(Slice, StridedMasks) {
  const auto run_masked = [](const Shape& shape,
                             std::initializer_list<std::pair<const char*, const char*>> masks,
                             const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                             const std::vector<int64_t>& step) {
    return run("StridedSlice", 1, attributes(masks),
               {counted(shape), ints(begin), ints(end), ints(step)})[0];
  };
  EXPECT_EQ(run_masked({4}, {{"begin_mask", "1"}, {"end_mask", "1"}}, {2}, {2}, {-1}).to_floats(),
            (std::vector<float>{3, 2, 1, 0}));
  EXPECT_EQ(run_masked({2, 3}, {{"shrink_axis_mask", "1"}}, {1}, {2}, {1}).shape(), (Shape{3}));
  EXPECT_EQ(run_masked({2, 3}, {{"shrink_axis_mask", "0,1"}}, {0, -1}, {2, 0}, {1, 1}).to_floats(),
            (std::vector<float>{2, 5}));
  EXPECT_EQ(run_masked({2, 3}, {{"new_axis_mask", "0,1"}}, {0, 0, 1}, {2, 0, 3}, {1, 1, 1}).shape(),
            (Shape{2, 1, 2}));
  EXPECT_EQ(
      run_masked({2, 3, 4, 5}, {{"ellipsis_mask", "0,1"}}, {1, 0, 1}, {2, 0, 3}, {1, 1, 1}).shape(),
      (Shape{1, 3, 4, 2}));
  EXPECT_EQ(
      run_masked({2, 3}, {{"ellipsis_mask", "0,0,1"}}, {1, 1, 0}, {2, 3, 0}, {1, 1, 1}).shape(),
      (Shape{1, 2}));
}

TEST(Slice, Views) {
  const Tensor in = counted({2, 6, 5, 4});
  check_views("Slice", 8, {}, {in, ints({1, -1}), ints({5, -9}), ints({2, -1}), ints({1, 3})});
  const Attributes masks = attributes({{"begin_mask", "1,0,0"},
                                       {"end_mask", "1,0,0"},
                                       {"shrink_axis_mask", "0,0,1"},
                                       {"new_axis_mask", "0,1,0"}});
  check_views("StridedSlice", 1, masks, {in, ints({0, 0, 3}), ints({0, 0, 4}), ints({-1, 1, 1})});
}

TEST(Slice, Refuses) {
  const Tensor in = counted({3, 4});
  EXPECT_TRUE(says(error_of("Slice", 8, {}, {in, ints({0}), ints({1}), ints({0})}), "a step is 0"));
  EXPECT_TRUE(says(error_of("Slice", 8, {}, {in, ints({0, 0}), ints({1}), ints({1})}),
                   "start, stop, step and axes differ in length"));
  EXPECT_TRUE(
      says(error_of("Slice", 8, {}, {in, ints({0, 0}), ints({1, 1}), ints({1, 1}), ints({1, -1})}),
           "axis -1 is given twice"));
  EXPECT_TRUE(says(error_of("Slice", 8, {}, {in, ints({0}), ints({1}), ints({1}), ints({2})}),
                   "axis 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(error_of("StridedSlice", 1, {}, {in, ints({0, 0, 0}), ints({1, 1, 1})}),
                   "slices 3 dimensions of [3,4]"));
  EXPECT_TRUE(says(error_of("StridedSlice", 1, attributes({{"shrink_axis_mask", "1"}}),
                            {in, ints({3}), ints({4})}),
                   "index 3 is out of range for dimension 0 of [3,4]"));
  EXPECT_TRUE(says(error_of("StridedSlice", 1, attributes({{"ellipsis_mask", "1,1"}}),
                            {in, ints({0, 0}), ints({1, 1})}),
                   "ellipsis_mask is set twice"));
}

}  // namespace
}  // namespace clinfer::test
