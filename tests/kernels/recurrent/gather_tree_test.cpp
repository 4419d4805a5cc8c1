// GatherTree.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

TEST(GatherTree, FollowsParents) {
  // Three steps of two beams; beam 0 of the last step comes from beam 1.
  const Tensor ids = ints({3, 1, 2}, {1, 2, 3, 4, 5, 9}),
               parents = ints({3, 1, 2}, {0, 0, 1, 0, 1, 0});
  EXPECT_EQ(run("GatherTree", 1, {}, {ids, parents, ints({3}), scalar(9)}, 1, 3)[0].to_ints(),
            (std::vector<int64_t>{1, 2, 4, 3, 5, 9}));
  EXPECT_EQ(run("GatherTree", 1, {}, {ids, parents, ints({1}), scalar(9)}, 1, 3)[0].to_ints(),
            (std::vector<int64_t>{1, 2, 9, 9, 9, 9}));
  EXPECT_EQ(run("GatherTree", 1, {}, {ids, parents, ints({3}), scalar(4)}, 1, 3)[0].to_ints(),
            (std::vector<int64_t>{1, 2, 4, 3, 4, 9}));
  // Zeros are read from a parent that is no beam.
  EXPECT_EQ(run("GatherTree", 1, {},
                {ids, ints({3, 1, 2}, {0, 0, 0, 0, 7, 0}), ints({3}), scalar(8)}, 1, 3)[0]
                .to_ints(),
            (std::vector<int64_t>{0, 1, 0, 3, 5, 9}));
  EXPECT_TRUE(says(
      error_of("GatherTree", 1, {}, {ids, ints({1, 1, 2}, {0, 0}), ints({3}), scalar(9)}, 1, 3),
      "step ids [3,1,2], parents [1,1,2], lengths [1] and end token do not fit"));
}

}  // namespace
}  // namespace clinfer::test
