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

// One rule for indices out of range (index_range.h): constants are refused when a model is loaded.
TEST(EmbeddingBag, Refuses) {
  const auto refused = [](const char* type, std::vector<Tensor> inputs, const char* why) {
    EXPECT_TRUE(says(error_of(type, 3, {}, inputs, 1, 1), why));
  };
  const std::string offsets = "EmbeddingBagOffsetsSum", segments = "EmbeddingSegmentsSum";
  refused(offsets.c_str(), {kTable, ints({4}), ints({0})},
          "an index is 4, which is out of range; it may be 0 to 3");
  refused(offsets.c_str(), {kTable, ints({-1}), ints({0})},
          "an index is -1, which is out of range");
  refused(offsets.c_str(), {kTable, ints({1}), ints({0}), scalar(4)},
          "the default index is 4, which is out of range");
  refused(offsets.c_str(), {kTable, ints({1}), ints({0, 2})},
          "an offset is 2, which is out of range; it may be 0 to 1");
  refused(offsets.c_str(), {kTable, ints({1, 1}), ints({1, 0})},
          "an offset is less than the one before");
  refused("EmbeddingBagPackedSum", {kTable, ints({2}), counted({2})},
          "the indices has the shape [1], it must have 2 dimensions");
  refused(segments.c_str(), {kTable, ints({1, 1}), ints({1, 0}), scalar(2)},
          "a segment's number is less than the one before");
  refused(segments.c_str(), {kTable, ints({1, 1}), ints({0, 2}), scalar(2)},
          "a segment's number is 2, which is out of range; it may be 0 to 1");
  refused(segments.c_str(), {kTable, ints({1}), ints({0}), scalar(-2)},
          "the number of bags is negative");
}

// Computed ones read zeros, write nothing and are limited to what there is.
TEST(EmbeddingBag, ReadsZerosAtComputedIndicesOutOfRange) {
  EXPECT_EQ(run("EmbeddingBagPackedSum", 3, {}, {kTable, ints({2, 2}, {1, 4, -1, 3})}, 1, 2)[0]
                .to_floats(),
            (std::vector<float>{2, 3, 6, 7}));
  EXPECT_EQ(run("EmbeddingBagOffsetsSum", 3, {},
                {kTable, ints({1, 3, 0}), ints({-5, 2, 1, 9}), scalar(77)}, 1, 4)[0]
                .to_floats(),
            (std::vector<float>{8, 10, 0, 0, 6, 8, 0, 0}));
  // The segments of rows in no order, two of them beyond the last.
  EXPECT_EQ(run("EmbeddingSegmentsSum", 3, {},
                {kTable, ints({1, 3, 0, 2, 2}), ints({1, 0, 1, 2, -1}), scalar(2)}, 1, 3)[0]
                .to_floats(),
            (std::vector<float>{6, 7, 2, 4}));
}

}  // namespace
}  // namespace clinfer::test
