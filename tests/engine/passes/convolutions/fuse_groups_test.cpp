// Convolutions of the parts of a split, as one grouped convolution.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::add;
using test::count_of;
using test::expect_becomes;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;

struct Group {
  int64_t outputs = 4;
  const char* pads = "1,1";
  float bias = 0;
  bool swapped = false;  // reads the other part
};

Edge grouped(GraphBuilder& b, Edge x, const std::vector<Group>& groups) {
  const Edge split = b.op("Split", 1, {x, b.constant(Tensor::of<int>(ElementType::i64, {}, {1}))},
                          {{"num_splits", groups.size() == 2 ? "2" : "3"}}, groups.size());
  std::vector<Edge> parts;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const int part = static_cast<int>(group.swapped ? groups.size() - 1 - i : i);
    Edge y = b.op(
        "Convolution", 1,
        {{split.node, part}, b.constant(random_tensor({group.outputs, 3, 3, 3}, -1, 1, 20 + part))},
        {{"strides", "1,1"},
         {"dilations", "1,1"},
         {"pads_begin", "1,1"},
         {"pads_end", group.pads}});
    if (group.bias != 0)
      y = add(b, y, b.constant(random_tensor({1, group.outputs, 1, 1}, -1, group.bias, 9)));
    parts.push_back(y);
  }
  if (parts.size() == 2) return b.op("Concat", 1, {parts[0], parts[1]}, {{"axis", "1"}});
  return b.op("Concat", 1, {parts[0], parts[1], parts[2]}, {{"axis", "-3"}});
}

void expect_groups(bool one, const std::vector<Group>& groups) {
  GraphBuilder b;
  b.result(grouped(b, b.parameter({2, static_cast<int64_t>(3 * groups.size()), 6, 5}), groups));
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), one ? 1u : 0u);
  EXPECT_EQ(count_of(*graph, "Split"), one ? 0u : 1u);
}

TEST(FuseGroups, ConvolutionsThatAgree) {
  expect_groups(true, {{}, {}});
  expect_groups(true, {{}, {}, {}});
  expect_groups(true, {{4, "1,1", 1}, {4, "1,1", 2}});
}

TEST(FuseGroups, NotThoseThatDiffer) {
  expect_groups(false, {{4}, {5}});
  expect_groups(false, {{4, "1,1", 1}, {4}});
  expect_groups(false, {{4, "1,1", 0, true}, {4, "1,1", 0, true}});
  GraphBuilder b;  // one convolution is also read elsewhere
  const Edge all = grouped(b, b.parameter({1, 6, 6, 5}), {{}, {}});
  b.result(all);
  b.result(all.node->inputs[1]);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), 0u);
}

TEST(FuseGroups, NotOtherStrides) {
  GraphBuilder b;
  const Edge all = grouped(b, b.parameter({1, 6, 6, 5}), {{}, {}});
  all.node->inputs[1].node->attributes.set("pads_begin", "2,1");
  all.node->inputs[1].node->attributes.set("pads_end", "0,1");
  b.result(all);
  auto graph = b.finish();
  expect_same_values(*graph, "fuse_groups");
  EXPECT_EQ(count_of(*graph, "GroupConvolution"), 0u);
}

TEST(FuseGroups, TextOfTwoGroups) {
  expect_becomes(R"(
      x = parameter f32[1,4,3,3]
      axis = i64[] 1
      a, b = Split-1(x, axis) num_splits=2
      w = random[3,2,1,1]
      y = Convolution-1(a, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
      z = Convolution-1(b, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
      all = Concat-1(y, z) axis=1
      result all)",
                 "fuse_groups",
                 "a = GroupConvolution(in0, f32[2,3,2,1,1])\n"
                 "result a\n");
}

}  // namespace
}  // namespace clinfer
