// EmbeddingBagOffsets, EmbeddingBagPacked, their older forms, EmbeddingSegmentsSum.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

const Tensor kTable = counted({4, 2});  // rows 0 1, 2 3, 4 5, 6 7

TEST(EmbeddingBag, Sums) {
  EXPECT_EQ(
      run("EmbeddingBagOffsetsSum", 3, {}, {kTable, ints({1, 3, 0}), ints({0, 2, 2})}, 1, 3)[0]
          .to_floats(),
      (std::vector<float>{8, 10, 0, 0, 0, 1}));
  EXPECT_EQ(
      run("EmbeddingBagOffsetsSum", 3, {},
          {kTable, ints({1, 3, 0}), ints({0, 2, 2}), scalar(2), floats({3}, {1, 0.5f, 3})}, 1, 3)[0]
          .to_floats(),
      (std::vector<float>{5, 6.5f, 4, 5, 0, 3}));
  EXPECT_EQ(run("EmbeddingBagPackedSum", 3, {}, {kTable, ints({2, 2}, {0, 1, 3, 3})}, 1, 2)[0]
                .to_floats(),
            (std::vector<float>{2, 4, 12, 14}));
  EXPECT_EQ(run("EmbeddingSegmentsSum", 3, {},
                {kTable, ints({1, 3, 0}), ints({0, 0, 2}), scalar(4), scalar(-1)}, 1, 3)[0]
                .to_floats(),
            (std::vector<float>{8, 10, 0, 0, 0, 1, 0, 0}));
}

TEST(EmbeddingBag, Means) {
  const Attributes mean = attributes({{"reduction", "mean"}}), sum;
  const std::vector<Tensor> bags{kTable, ints({1, 3, 0}), ints({0, 2, 2})};
  EXPECT_EQ(run("EmbeddingBagOffsets", 15, mean, bags, 1, 3)[0].to_floats(),
            (std::vector<float>{4, 5, 0, 0, 0, 1}));
  EXPECT_EQ(run("EmbeddingBagOffsets", 15, sum, bags, 1, 3)[0].to_floats(),
            (std::vector<float>{8, 10, 0, 0, 0, 1}));
  EXPECT_EQ(run("EmbeddingBagPacked", 15, mean, {kTable, ints({2, 2}, {0, 1, 3, 3})}, 1, 2)[0]
                .to_floats(),
            (std::vector<float>{1, 2, 6, 7}));
  EXPECT_TRUE(says(error_of("EmbeddingBagPacked", 15, mean,
                            {kTable, ints({1, 2}, {0, 1}), floats({1, 2}, {1, 1})}, 1, 2),
                   "weights of a mean"));
  EXPECT_TRUE(says(error_of("EmbeddingBagPacked", 15, attributes({{"reduction", "max"}}),
                            {kTable, ints({1, 2}, {0, 1})}, 1, 2),
                   "unknown reduction \"max\""));
}

TEST(EmbeddingBag, Refuses) {
  EXPECT_TRUE(says(error_of("EmbeddingBagOffsetsSum", 3, {}, {kTable, ints({4}), ints({0})}, 1, 3),
                   "index 4 is out of range for a table of 4 rows"));
  EXPECT_TRUE(
      says(error_of("EmbeddingBagOffsetsSum", 3, {}, {kTable, ints({1}), ints({0, 2})}, 1, 3),
           "offset 0 is out of order or range"));
  EXPECT_TRUE(
      says(error_of("EmbeddingBagOffsetsSum", 3, {}, {kTable, ints({1, 1}), ints({1, 0})}, 1, 3),
           "offset 1 is out of order or range"));
  EXPECT_TRUE(
      says(error_of("EmbeddingBagPackedSum", 3, {}, {kTable, ints({2}), counted({2})}, 1, 2),
           "the indices has the shape [1], it must have 2 dimensions"));
  EXPECT_TRUE(says(error_of("EmbeddingSegmentsSum", 3, {},
                            {kTable, ints({1, 1}), ints({1, 0}), scalar(2)}, 1, 3),
                   "segment ids must rise and be below 2"));
  EXPECT_TRUE(says(error_of("EmbeddingSegmentsSum", 3, {},
                            {kTable, ints({1, 1}), ints({0, 2}), scalar(2)}, 1, 3),
                   "segment ids must rise and be below 2"));
  EXPECT_TRUE(says(
      error_of("EmbeddingSegmentsSum", 3, {}, {kTable, ints({1}), ints({0}), scalar(-2)}, 1, 3),
      "the number of bags is negative"));
}

}  // namespace
}  // namespace clinfer::test
