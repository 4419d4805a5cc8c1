// Channel shuffles and reordered channels in front of convolutions.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::add;
using test::convolved;
using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;
using test::mul;
using test::random_tensor;
using test::reshape;
using test::sub;
using test::transpose;
using test::unary;

Edge pointwise(GraphBuilder& b, Edge x, int64_t in, int64_t out, unsigned seed) {
  return b.op(
      "Convolution", 1, {x, b.constant(random_tensor({out, in, 1, 1}, -1, 1, seed))},
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}});
}

Edge half(GraphBuilder& b, Edge x, int64_t begin) {
  return b.op("Slice", 8, {x, b.ints({begin}), b.ints({begin + 8}), b.ints({1}), b.ints({1})});
}

// Two units of a ShuffleNet, as PyTorch exports them or as OpenVINO converts that.
std::unique_ptr<Graph> shuffle_net(const std::vector<int64_t>& order, bool second_reader = false,
                                   bool as_converted = false) {
  GraphBuilder b;
  const Edge in = b.parameter({2, 8, 5, 6});
  Edge around = unary(b, "ReLU", pointwise(b, in, 8, 8, 1)), y = in;
  for (unsigned unit = 0; unit < 2; ++unit) {
    y = pointwise(b, y, 8, 8, 2 + unit);
    y = add(b, y, b.constant(random_tensor({1, 8, 1, 1}, -1, 1, 7)));
    y = b.op("PReLU", 1, {y, b.constant(random_tensor({8}, 0, 1, 8))});
    y = b.op("Concat", 1, {around, y}, {{"axis", "1"}});
    if (as_converted) {
      const Edge whole = b.op("ShuffleChannels", 1, {y}, {{"axis", "1"}, {"group", "2"}});
      around = half(b, whole, 0);
      y = half(b, whole, 8);
    } else {
      y = reshape(b, transpose(b, reshape(b, y, {2, 2, 8, 5, 6}), order), {2, 16, 5, 6});
      around = b.op("VariadicSplit", 1, {y, b.ints({1}), b.ints({8, 8})}, {}, 2);
      y = {around.node, 1};
    }
    if (second_reader) b.result(y);
  }
  b.result(b.op("Concat", 1, {around, pointwise(b, y, 8, 8, 9)}, {{"axis", "1"}}));
  return b.finish();
}

TEST(FoldShuffles, OneCopyAUnit) {
  auto graph = shuffle_net({0, 2, 1, 3, 4});
  expect_same_values(*graph, "fold_shuffles");
  EXPECT_EQ(count_of(*graph, "VariadicSplit"), 0u);
  expect_same_values(*graph, "");
  EXPECT_EQ(count_of(*graph, "Reorder"), 3u);  // two units, and the result
}

TEST(FoldShuffles, AsOpenVinoWritesThem) {
  auto graph = shuffle_net({}, false, true);
  expect_same_values(*graph, "fold_shuffles");
  EXPECT_EQ(count_of(*graph, "VariadicSplit"), 0u);
  expect_same_values(*graph, "");
  EXPECT_EQ(count_of(*graph, "Reorder"), 3u);
}

Edge depthwise(GraphBuilder& b, Edge x, int64_t channels) {
  return b.op(
      "GroupConvolution", 1, {x, b.constant(random_tensor({channels, 1, 1, 3, 3}, -1, 1, 5))},
      {{"strides", "2,2"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
}

// Before a stage all channels are read in their new order, by convolutions alone.
TEST(FoldShuffles, BeforeConvolutionsOfAllChannels) {
  for (const int64_t groups : {2, 3}) {
    for (const bool read_otherwise : {false, true}) {
      GraphBuilder b;
      const Edge x = b.parameter({2, 12, 5, 6});
      const Edge y = b.op("ShuffleChannels", 1, {unary(b, "ReLU", x)},
                          {{"axis", "1"}, {"group", std::to_string(groups)}});
      Edge left = depthwise(b, y, 12);
      left =
          pointwise(b, add(b, left, b.constant(random_tensor({1, 12, 1, 1}, -1, 1, 7))), 12, 8, 1);
      b.result(left);
      b.result(pointwise(b, y, 12, 4, 2));
      if (read_otherwise) b.result(unary(b, "Tanh", y));
      auto graph = b.finish();
      expect_same_values(*graph, "fold_shuffles");
      EXPECT_EQ(count_of(*graph, "Transpose"), read_otherwise ? 1u : 0u) << groups;
    }
  }
}

TEST(FoldShuffles, NotOtherOrdersOrReaders) {
  auto other = shuffle_net({0, 2, 1, 4, 3});
  expect_same_values(*other, "fold_shuffles");
  EXPECT_EQ(count_of(*other, "VariadicSplit"), 2u);
  auto read = shuffle_net({0, 2, 1, 3, 4}, true);
  expect_same_values(*read, "fold_shuffles");
  EXPECT_EQ(count_of(*read, "VariadicSplit"), 2u);
}

// Channels in another order, on the way to a convolution.
TEST(FoldShuffles, OrdersOfChannels) {
  for (const int what : {0, 1, 2, 3, 4}) {
    GraphBuilder b;
    // 1: a channel twice; 2: not the channels; 3: a further reader; 4: a norm across channels.
    const Edge in = b.parameter({2, 3, 3, 5});
    const Edge picked = b.op(
        "Gather", 8,
        {in, b.ints(what == 1 ? std::vector<int64_t>{2, 0, 2} : std::vector<int64_t>{2, 0, -2}),
         b.constant(Tensor::of<int>(ElementType::i64, {}, {what == 2 ? 2 : 1}))},
        {{"batch_dims", "0"}});
    Edge x = b.op("PReLU", 1, {picked, b.constant(random_tensor({3}, -1, 1, 2))});
    x = sub(b, b.constant(random_tensor({1, 3, 1, 1}, -1, 1, 3)), x);
    x = b.op("MVN", 6,
             {x, b.ints(what == 4 ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{-1, 2})},
             {{"normalize_variance", "true"}, {"eps", "0.1"}, {"eps_mode", "inside_sqrt"}});
    x = mul(b, x, b.constant(random_tensor({3, 1, 1}, -1, 1, 4)));
    if (what == 3) b.result(unary(b, "Tanh", x));
    b.result(convolved(b, x, 4, 3, "1,1", "1,1", "1,1"));
    auto graph = b.finish();
    expect_same_values(*graph, "fold_shuffles");
    EXPECT_EQ(count_of(*graph, "Gather"), what == 0 ? 0u : 1u) << what;
  }
}

}  // namespace
}  // namespace clinfer
