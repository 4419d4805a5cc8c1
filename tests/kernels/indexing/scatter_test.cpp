// ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate: values, reductions, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(Scatter, Update) {
  EXPECT_EQ(run("ScatterUpdate", 3, {},
                {counted({2, 3}), ints({2, 0}), floats({2, 2}, {10, 11, 12, 13}), scalar(1)})[0]
                .to_floats(),
            (std::vector<float>{11, 1, 10, 13, 4, 12}));
  EXPECT_EQ(
      run("ScatterUpdate", 3, {}, {counted({2, 2}), scalar(-1), floats({2}, {7, 8}), scalar(0)})[0]
          .to_floats(),
      (std::vector<float>{0, 1, 7, 8}));
}

TEST(Scatter, Elements) {
  const std::vector<Tensor> inputs{counted({2, 3}), ints({2, 2}, {2, 0, 1, 1}),
                                   floats({2, 2}, {10, 11, 12, 13}), scalar(1)};
  EXPECT_EQ(run("ScatterElementsUpdate", 3, {}, inputs)[0].to_floats(),
            (std::vector<float>{11, 1, 10, 3, 13, 5}));
  const auto reduced = [&](const char* how, const char* initial) {
    return run("ScatterElementsUpdate", 12,
               attributes({{"reduction", how}, {"use_init_val", initial}}), inputs)[0]
        .to_floats();
  };
  EXPECT_EQ(reduced("sum", "true"), (std::vector<float>{11, 1, 12, 3, 29, 5}));
  EXPECT_EQ(reduced("sum", "false"), (std::vector<float>{11, 1, 10, 3, 25, 5}));
  EXPECT_EQ(reduced("mean", "false"), (std::vector<float>{11, 1, 10, 3, 12.5f, 5}));
  EXPECT_EQ(reduced("min", "true"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Scatter, Nd) {
  EXPECT_EQ(run("ScatterNDUpdate", 3, {},
                {counted({2, 2}), ints({2, 1}, {1, 1}), floats({2, 2}, {7, 8, 9, 10})})[0]
                .to_floats(),
            (std::vector<float>{0, 1, 9, 10}));
  EXPECT_EQ(run("ScatterNDUpdate", 15, attributes({{"reduction", "prod"}}),
                {counted({2, 2}), ints({2, 2}, {1, 0, -1, 0}), floats({2}, {3, 5})})[0]
                .to_floats(),
            (std::vector<float>{0, 1, 30, 3}));
}

TEST(Scatter, Refuses) {
  const Tensor data = counted({2, 3});
  EXPECT_TRUE(says(error_of("ScatterUpdate", 3, {}, {data, ints({3}), counted({2, 1}), scalar(1)}),
                   "index 3 is out of range for a dimension of 3"));
  EXPECT_TRUE(says(error_of("ScatterUpdate", 3, {}, {data, ints({0}), counted({2, 2}), scalar(1)}),
                   "shapes do not fit: data [2,3], indices [1], updates [2,2]"));
  EXPECT_TRUE(
      says(error_of("ScatterUpdate", 3, {}, {data, ints({0}), ints({2, 1}, {1, 1}), scalar(1)}),
           "data and updates differ in element type"));
  EXPECT_TRUE(says(error_of("ScatterElementsUpdate", 3, {},
                            {data, ints({3, 1}, {0, 0, 0}), counted({3, 1}), scalar(1)}),
                   "shapes do not fit: data [2,3], indices [3,1], updates [3,1]"));
  EXPECT_TRUE(says(error_of("ScatterElementsUpdate", 3, {},
                            {data, ints({1, 1}, {-4}), counted({1, 1}), scalar(1)}),
                   "index -4 is out of range for a dimension of 3"));
  EXPECT_TRUE(
      says(error_of("ScatterNDUpdate", 3, {}, {data, ints({1, 3}, {0, 0, 0}), counted({1})}),
           "shapes do not fit: data [2,3], indices [1,3], updates [1]"));
  EXPECT_TRUE(says(error_of("ScatterNDUpdate", 3, {}, {data, ints({1, 2}, {0, 9}), counted({1})}),
                   "index 9 is out of range for a dimension of 3"));
}

}  // namespace
}  // namespace clinfer::test
