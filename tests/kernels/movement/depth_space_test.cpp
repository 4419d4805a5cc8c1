// DepthToSpace, SpaceToDepth, BatchToSpace, SpaceToBatch, ShuffleChannels: values, kernels against
// evaluate(), refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Attributes blocks(const char* mode, const char* size) {
  return attributes({{"mode", mode}, {"block_size", size}});
}

void check_everywhere(const std::string& type, int opset, const Attributes& a,
                      const std::vector<Tensor>& inputs) {
  std::vector<bool> constant(inputs.size(), true);
  constant[0] = false;
  OpDesc desc = make_desc(type, opset, a, inputs, constant);
  check_op(desc, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0]);
  check_op(desc, inputs);
}

TEST(DepthToSpace, Values) {
  const Tensor in = counted({1, 8, 1, 1});
  EXPECT_EQ(run("DepthToSpace", 1, blocks("blocks_first", "2"), {in})[0].to_floats(),
            (std::vector<float>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(run("DepthToSpace", 1, blocks("depth_first", "2"), {in})[0].to_floats(),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(DepthToSpace, IsUndoneBySpaceToDepth) {
  for (const char* mode : {"blocks_first", "depth_first"})
    for (const Shape& shape : {Shape{2, 12, 3}, Shape{1, 8, 3, 2}, Shape{1, 16, 2, 3, 1}}) {
      const Tensor in = counted(shape), wide = run("DepthToSpace", 1, blocks(mode, "2"), {in})[0];
      EXPECT_EQ(run("SpaceToDepth", 1, blocks(mode, "2"), {wide})[0].to_floats(), in.to_floats())
          << mode << to_string(shape);
    }
}

TEST(DepthToSpace, Kernels) {
  for (const char* mode : {"blocks_first", "depth_first"}) {
    check_everywhere("DepthToSpace", 1, blocks(mode, "2"), {random_tensor({2, 20, 3, 5})});
    check_everywhere("SpaceToDepth", 1, blocks(mode, "3"), {random_tensor({2, 5, 6, 9})});
  }
  check_everywhere("DepthToSpace", 1, blocks("depth_first", "2"),
                   {random_tensor({2, 16, 2, 3, 4})});
}

TEST(DepthToSpace, Refuses) {
  EXPECT_TRUE(
      says(error_of("DepthToSpace", 1, blocks("blocks_first", "2"), {counted({1, 6, 1, 1})}),
           "channels of [1,6,1,1] are no multiple of 4"));
  EXPECT_TRUE(
      says(error_of("DepthToSpace", 1, blocks("blocks_first", "0"), {counted({1, 4, 1, 1})}),
           "block_size 0 is out of range"));
  EXPECT_TRUE(says(
      error_of("DepthToSpace", 1, blocks("blocks_first", "4294967296"), {counted({1, 4, 1, 1})}),
      "block_size 4294967296 is out of range"));
  EXPECT_TRUE(says(error_of("DepthToSpace", 1, blocks("sideways", "2"), {counted({1, 4, 1, 1})}),
                   "mode \"sideways\""));
  EXPECT_TRUE(
      says(error_of("SpaceToDepth", 1, blocks("blocks_first", "2"), {counted({1, 4, 3, 2})}),
           "block_size 2 does not divide [1,4,3,2]"));
  EXPECT_TRUE(says(error_of("SpaceToDepth", 1, blocks("blocks_first", "2"), {counted({4, 4})}),
                   "the input has the shape [4,4], it must have 3 to 5 dimensions"));
}

TEST(BatchToSpace, Values) {
  EXPECT_EQ(
      run("BatchToSpace", 2, {},
          {counted({4, 1, 1, 2}), ints({1, 1, 2, 2}), ints({0, 0, 0, 1}), ints({0, 0, 1, 0})})[0]
          .to_floats(),
      (std::vector<float>{2, 1, 3}));
  EXPECT_EQ(
      run("SpaceToBatch", 2, {},
          {counted({1, 1, 1, 3}), ints({1, 1, 1, 2}), ints({0, 0, 0, 1}), ints({0, 0, 0, 0})})[0]
          .to_floats(),
      (std::vector<float>{0, 1, 0, 2}));
}

TEST(BatchToSpace, Kernels) {
  const Tensor none = ints({0, 0, 0, 0});
  check_everywhere("BatchToSpace", 2, {},
                   {random_tensor({12, 3, 4, 5}), ints({1, 1, 2, 3}), none, none});
  check_everywhere(
      "BatchToSpace", 2, {},
      {random_tensor({12, 3, 4, 5}), ints({1, 1, 2, 3}), ints({0, 1, 1, 4}), ints({0, 0, 3, 2})});
  check_everywhere("SpaceToBatch", 2, {},
                   {random_tensor({2, 3, 4, 6}), ints({1, 1, 2, 3}), none, none});
  check_everywhere(
      "SpaceToBatch", 2, {},
      {random_tensor({2, 3, 5, 4}), ints({1, 2, 2, 3}), ints({0, 0, 1, 2}), ints({0, 1, 2, 0})});
}

TEST(BatchToSpace, Refuses) {
  const auto refused = [](const char* type, const std::vector<int64_t>& block,
                          const std::vector<int64_t>& begin, const std::vector<int64_t>& end) {
    return error_of(type, 2, {}, {counted({4, 1, 2}), ints(block), ints(begin), ints(end)});
  };
  EXPECT_EQ(refused("BatchToSpace", {1, 1, 2}, {0, 0, 1}, {0, 0, 3}), "");
  EXPECT_TRUE(says(refused("BatchToSpace", {1, 1, 2}, {0, 0, 2}, {0, 0, 3}),
                   "crops take more than there is"));
  EXPECT_TRUE(says(refused("BatchToSpace", {1, 1, 3}, {0, 0, 0}, {0, 0, 0}),
                   "batch of [4,1,2] is no multiple of 3"));
  EXPECT_TRUE(
      says(refused("BatchToSpace", {2, 1, 2}, {0, 0, 0}, {0, 0, 0}), "block_shape [2,1,2]"));
  EXPECT_TRUE(says(refused("BatchToSpace", {1, 2}, {0, 0}, {0, 0}),
                   "block_shape and crops must have an entry for each dimension"));
  EXPECT_TRUE(says(refused("SpaceToBatch", {1, 1, 3}, {0, 0, 0}, {0, 0, 0}),
                   "block_shape does not divide the padded dimension 2"));
  EXPECT_TRUE(
      says(refused("SpaceToBatch", {1, 1, 2}, {0, 0, -2}, {0, 0, 0}), "pads [0,0,-2], [0,0,0]"));
  EXPECT_TRUE(says(refused("SpaceToBatch", {1, 1, 2}, {0, 0, INT64_MAX}, {0, 0, 1}),
                   "block_shape does not divide the padded dimension 2"));
}

TEST(ShuffleChannels, Values) {
  EXPECT_EQ(
      run("ShuffleChannels", 1, attributes({{"axis", "1"}, {"group", "2"}}), {counted({1, 6})})[0]
          .to_floats(),
      (std::vector<float>{0, 3, 1, 4, 2, 5}));
  // Two images of four channels of two pixels, the axis from the end.
  EXPECT_EQ(run("ShuffleChannels", 1, attributes({{"axis", "-2"}, {"group", "2"}}),
                {counted({2, 4, 2})})[0]
                .to_floats(),
            (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_TRUE(says(error_of("ShuffleChannels", 1, attributes({{"axis", "1"}, {"group", "4"}}),
                            {counted({1, 6})}),
                   "4 groups do not divide dimension 1 of [1,6]"));
  EXPECT_TRUE(says(error_of("ShuffleChannels", 1, attributes({{"axis", "1"}, {"group", "0"}}),
                            {counted({1, 6})}),
                   "0 groups do not divide dimension 1 of [1,6]"));
}

}  // namespace
}  // namespace clinfer::test
