// Concats that join the parts of a split again.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

// A convolution, its two halves, and a convolution of the second half, as in YOLOv8's blocks; gives
// how many inputs are left of a concat of `joined` (a, b: the halves; c: the second convolution).
size_t inputs_left(const std::string& joined, const std::string& axis) {
  const auto graph = test::graph_of(R"(
    x = parameter f32[1,3,6,6]
    v = random[6,3,1,1]
    w = random[3,3,1,1]
    channels = i64[] 1
    y = Convolution-1(x, v) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
    a, b = Split-1(y, channels) num_splits=2
    c = Convolution-1(b, w) strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0
    z = Concat-1()" + joined +
                                    ") axis=" + axis + R"(
    result z
  )");
  test::expect_same_values(*graph, "join_splits");
  for (const auto& node : graph->nodes())
    if (node->is("Concat")) return node->inputs.size();
  return 0;
}

TEST(JoinSplits, AllPartsInOrder) {
  EXPECT_EQ(inputs_left("a, b, c", "1"), 2u);
  EXPECT_EQ(inputs_left("c, a, b", "-3"), 2u);
  EXPECT_EQ(inputs_left("a, b, a, b", "1"), 2u);
}

TEST(JoinSplits, NotOtherOrdersPartsOrAxes) {
  EXPECT_EQ(inputs_left("b, a, c", "1"), 3u);
  EXPECT_EQ(inputs_left("a, c", "1"), 2u);
  EXPECT_EQ(inputs_left("a, c, b", "1"), 3u);
  EXPECT_EQ(inputs_left("a, b, c", "2"), 3u);
}

}  // namespace
}  // namespace clinfer
