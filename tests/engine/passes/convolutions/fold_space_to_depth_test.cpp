// Blocks of pixels as channels, in front of a convolution.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::convolved;
using test::count_of;
using test::expect_same_values;
using test::find;
using test::GraphBuilder;
using test::operations;

Edge every_second(GraphBuilder& b, Edge x, int axis, int from, int step = 2) {
  return b.op("Slice", 8, {x, b.ints({from}), b.ints({1000}), b.ints({step}), b.ints({axis})});
}

// As PyTorch writes x[..., ::2, ::2]: a slice of rows, then of columns.
Edge focus(GraphBuilder& b, Edge x, const std::vector<std::pair<int, int>>& places) {
  std::vector<Edge> parts;
  for (const auto& [row, column] : places)
    parts.push_back(every_second(b, every_second(b, x, 2, row), 3, column));
  return b.op("Concat", 1, {parts[0], parts[1], parts[2], parts[3]}, {{"axis", "1"}});
}

TEST(FoldSpaceToDepth, SlicesInFrontOfAConvolution) {
  struct Layer {
    int64_t kernel;
    const char *strides, *begin, *end, *auto_pad;
  };
  for (const Layer& layer : {Layer{3, "1,1", "1,1", "1,1", "explicit"},
                             {3, "2,2", "0,1", "2,0", "explicit"},
                             {1, "1,1", "0,0", "0,0", "explicit"},
                             {3, "2,1", "0,0", "0,0", "same_lower"},
                             {3, "2,2", "0,0", "-1,-1", "explicit"},
                             {4, "3,3", "0,0", "0,0", "valid"}}) {
    GraphBuilder b;
    const Edge x = b.parameter({2, 3, 12, 16});
    b.result(convolved(b, focus(b, x, {{0, 0}, {1, 0}, {0, 1}, {1, 1}}), 5, layer.kernel,
                       layer.strides, layer.begin, layer.end, layer.auto_pad));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(operations(*graph), 1u) << layer.kernel << " " << layer.strides;
    const Node* folded = find(*graph, "Convolution");
    EXPECT_EQ(folded->inputs[1].node->constant.shape(),
              (Shape{5, 3, 2 * layer.kernel, 2 * layer.kernel}));
    const Shape shape = folded->shape();
    infer_node_shapes(*const_cast<Node*>(folded));
    EXPECT_EQ(folded->shape(), shape);
  }
}

TEST(FoldSpaceToDepth, TheOperationItself) {
  for (const char* mode : {"blocks_first", "depth_first"}) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 2, 9, 12});
    const Edge deep = b.op("SpaceToDepth", 1, {x}, {{"block_size", "3"}, {"mode", mode}});
    b.result(convolved(b, deep, 4, 2, "1,1", "1,0", "0,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(operations(*graph), 1u) << mode;
  }
}

TEST(FoldSpaceToDepth, NotWhatIsNoBlock) {
  // These stay: a part that is used twice, other steps, a further reader, parts of two pictures,
  // pixels left over.
  for (int what = 0; what < 5; ++what) {
    GraphBuilder b;
    const Edge x = b.parameter({1, 3, 8, what == 4 ? 9 : 8}), y = b.parameter({1, 3, 8, 8});
    Edge parts;
    if (what == 0) {
      parts = focus(b, x, {{0, 0}, {1, 0}, {0, 0}, {1, 1}});
    } else if (what == 1) {
      const Edge every = every_second(b, x, 2, 0), fourth = every_second(b, y, 2, 0, 4);
      parts = b.op("Concat", 1, {every_second(b, fourth, 3, 0), every_second(b, fourth, 3, 1)},
                   {{"axis", "1"}});
      b.result(every);
    } else if (what == 3) {
      parts = b.op("Concat", 1,
                   {every_second(b, every_second(b, x, 2, 0), 3, 0),
                    every_second(b, every_second(b, y, 2, 1), 3, 0)},
                   {{"axis", "1"}});
    } else if (what == 4) {
      parts =
          b.op("Concat", 1, {every_second(b, x, 3, 0), every_second(b, x, 3, 0)}, {{"axis", "1"}});
    } else {
      parts = focus(b, x, {{0, 0}, {1, 0}, {0, 1}, {1, 1}});
      b.result(parts);
    }
    b.result(convolved(b, parts, 4, 3, "1,1", "1,1", "1,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_space_to_depth");
    EXPECT_EQ(count_of(*graph, "Concat"), 1u) << what;
  }
}

}  // namespace
}  // namespace clinfer
