// MaxPools of one tensor whose windows contain each other.
#include <map>

#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

// The kernels by the layers' names, after the pass.
std::map<std::string, std::string> kernels_of(const std::string& pools) {
  const auto graph = test::graph_of("x = parameter f32[1,3,11,9]\ny = ReLU-1(x)\n" + pools);
  test::expect_same_values(*graph, "cascade_pools");
  std::map<std::string, std::string> kernels;
  for (const auto& node : graph->nodes())
    if (node->is("MaxPool")) kernels[node->name] = node->attributes.get_string("kernel");
  return kernels;
}

TEST(CascadePools, EachReadsTheNextSmallerOne) {
  const auto kernels = kernels_of(R"(
    c = MaxPool-1(y) kernel=9,9 strides=1,1 pads_begin=4,4 pads_end=4,4
    a = MaxPool-1(y) kernel=3,3 strides=1,1 auto_pad=same_upper
    b = MaxPool-1(y) kernel=5,5 strides=1,1 pads_begin=2,2 pads_end=2,2
    z = Concat-1(a, c, b, y) axis=1
    result z
  )");
  EXPECT_EQ(kernels,
            (std::map<std::string, std::string>{{"a", "3,3"}, {"b", "3,3"}, {"c", "5,5"}}));
}

TEST(CascadePools, WindowsThatReachFurtherOnOneSide) {
  const auto kernels = kernels_of(R"(
    a = MaxPool-1(y) kernel=2,3 strides=1,1 pads_begin=0,1 pads_end=1,1
    b = MaxPool-1(y) kernel=4,3 strides=1,1 pads_begin=0,1 pads_end=3,1
    c = MaxPool-1(y) kernel=4,2 strides=1,1 pads_begin=3,1 pads_end=0,0
    z = Concat-1(a, b, c) axis=1
    result z
  )");
  EXPECT_EQ(kernels,
            (std::map<std::string, std::string>{{"a", "2,3"}, {"b", "3,1"}, {"c", "4,2"}}));
}

TEST(CascadePools, NotWithIndicesStridesOrDilations) {
  const auto kernels = kernels_of(R"(
    a = MaxPool-1(y) kernel=3,3 strides=1,1 pads_begin=1,1 pads_end=1,1
    b, indices = MaxPool-8(y) kernel=5,5 strides=1,1 dilations=1,1 pads_begin=2,2 pads_end=2,2
    c = MaxPool-1(y) kernel=5,5 strides=2,2 pads_begin=2,2 pads_end=2,2
    d, unused = MaxPool-8(y) kernel=5,5 strides=1,1 dilations=2,2 pads_begin=4,4 pads_end=4,4
    result a
    result b
    result indices
    result c
    result d
  )");
  EXPECT_EQ(kernels, (std::map<std::string, std::string>{
                         {"a", "3,3"}, {"b", "5,5"}, {"c", "5,5"}, {"d", "5,5"}}));
}

}  // namespace
}  // namespace clinfer
