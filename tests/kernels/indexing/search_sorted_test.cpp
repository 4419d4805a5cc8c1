// SearchSorted, Bucketize: values by hand, refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

using Ints = std::vector<int64_t>;

TEST(SearchSorted, Values) {
  const Tensor sorted = floats({2, 3}, {1, 3, 5, 2, 4, 6}), values = floats({2, 2}, {3, 6, 1, 4});
  const auto found = [&](const char* right, const Tensor& table) {
    return run("SearchSorted", 15, attributes({{"right_mode", right}}), {table, values}, 1, 2)[0]
        .to_ints();
  };
  EXPECT_EQ(found("false", sorted), (Ints{1, 3, 0, 1}));
  EXPECT_EQ(found("true", sorted), (Ints{2, 3, 0, 2}));
  EXPECT_EQ(found("false", floats({2}, {2, 4})), (Ints{1, 2, 0, 1}));
  EXPECT_TRUE(says(error_of("SearchSorted", 15, {}, {counted({3, 2}), counted({2, 2})}, 1, 2),
                   "sorted rows [3,2] and values [2,2] differ in more than the last"));
}

TEST(Bucketize, Values) {
  const auto bucket = [](const char* right) {
    return run("Bucketize", 3, attributes({{"with_right_bound", right}, {"output_type", "i32"}}),
               {ints({0, 2, 3, 5}), ints({2, 4})})[0]
        .to_ints();
  };
  EXPECT_EQ(bucket("true"), (Ints{0, 0, 1, 2}));
  EXPECT_EQ(bucket("false"), (Ints{0, 1, 1, 2}));
  EXPECT_EQ(run("Bucketize", 3, {}, {counted({2}), floats({0}, {})})[0].to_ints(), (Ints{0, 0}));
  EXPECT_TRUE(says(error_of("Bucketize", 3, {}, {counted({2}), counted({2, 2})}),
                   "the buckets has the shape [2,2], it must have 1 dimensions"));
}

}  // namespace
}  // namespace clinfer::test
