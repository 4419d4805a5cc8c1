// Attention in the forms in which exporters write it, and what looks alike but is none.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::find;
using test::graph_of;

// The graph after the pass, with the same values; of the attention nothing else is left.
std::unique_ptr<Graph> fused(const std::string& text) {
  auto graph = graph_of(text);
  expect_same_values(*graph, "fuse_attention", -2, 2);
  if (count_of(*graph, "Attention") != 1) throw std::runtime_error("no attention in\n" + text);
  EXPECT_EQ(count_of(*graph, "SoftMax"), 0u);
  EXPECT_EQ(count_of(*graph, "MatMul"), 0u);
  return graph;
}

size_t attentions_in(const std::string& text) {
  const auto graph = graph_of(text);
  expect_same_values(*graph, "fuse_attention", -2, 2);
  return count_of(*graph, "Attention");
}

const std::string kHeads = R"(
  q = parameter f32[2,3,5,8]
  k = parameter f32[2,3,7,8]
  v = parameter f32[2,3,7,4]
)";

TEST(FuseAttention, ScaleOnTheProductTheQueriesOrTheKeys) {
  for (const std::string lines :
       {"s = MatMul-1(q, k) transpose_b=true\nt = Multiply-1(s, c)\n",
        "s = MatMul-1(q, k) transpose_b=true\nt = Divide-1(s, c)\n",
        "u = Multiply-1(q, c)\nt = MatMul-1(u, k) transpose_b=true\n",
        "u = Divide-1(k, c)\nt = MatMul-1(q, u) transpose_b=true\n",
        "o = i64[4] 0 1 3 2\nu = Multiply-1(q, c)\nw = Transpose-1(k, o)\nx = Multiply-1(w, c)\n"
        "t = MatMul-1(u, x)\n"}) {
    SCOPED_TRACE(lines);
    const auto graph = fused(kHeads + "c = f32[] 0.5\n" + lines +
                             "p = SoftMax-8(t) axis=-1\ny = MatMul-1(p, v)\nresult y\n");
    EXPECT_EQ(count_of(*graph, "Multiply") + count_of(*graph, "Divide"), 0u);
    EXPECT_EQ(find(*graph, "Attention")->attributes.get_int("heads"), 0);
  }
}

// An expanded operation of the IR, with a mask of either kind, or causal.
TEST(FuseAttention, ScaledDotProductAttention) {
  const std::string masks[] = {"y = ScaledDotProductAttention-13(q, k, v) causal=false\n",
                               "m = parameter f32[5,7]\n"
                               "y = ScaledDotProductAttention-13(q, k, v, m) causal=false\n",
                               "m = parameter f32[2,1,5,7]\nz = f32[] 0\nb = Greater-1(m, z)\n"
                               "y = ScaledDotProductAttention-13(q, k, v, b) causal=false\n",
                               "y = ScaledDotProductAttention-13(q, k, v) causal=true\n"};
  for (const std::string& line : masks) {
    SCOPED_TRACE(line);
    const auto graph = fused(kHeads + line + "result y\n");
    const Node& node = *find(*graph, "Attention");
    EXPECT_EQ(node.inputs.size(), line.find("m = ") == std::string::npos ? 3u : 4u);
    EXPECT_EQ(node.attributes.get_bool("causal", false), line.find("=true") != std::string::npos);
  }
}

// As PyTorch exports a transformer of tokens by channels: the heads' places are views.
TEST(FuseAttention, TokensByChannels) {
  const auto graph = fused(R"(
    x = parameter f32[2,5,24]
    h = i64[4] 0 0 3 8
    o = i64[4] 0 2 1 3
    r = Reshape-1(x, h) special_zero=true
    q = Transpose-1(r, o)
    y0 = parameter f32[2,7,24]
    r1 = Reshape-1(y0, h) special_zero=true
    k = Transpose-1(r1, o)
    s = MatMul-1(q, k) transpose_b=true
    c = f32[1] 0.25
    t = Multiply-1(s, c)
    p = SoftMax-8(t) axis=3
    a = MatMul-1(p, k)
    b = Transpose-1(a, o)
    j = i64[3] 0 0 24
    y = Reshape-1(b, j) special_zero=true
    result y
  )");
  EXPECT_EQ(find(*graph, "Attention")->attributes.get_int("heads"), 1);
  run_passes(*graph, test::cpu_context());
  EXPECT_EQ(count_of(*graph, "Reorder"), 0u) << "no copy";
}

// As nn.MultiheadAttention: images and heads are one dimension of three.
TEST(FuseAttention, HeadsInTheBatch) {
  const auto graph = fused(R"(
    x = parameter f32[2,5,24]
    h = i64[4] 0 0 3 8
    o = i64[4] 0 2 1 3
    f = i64[3] 6 5 8
    r = Reshape-1(x, h) special_zero=true
    q0 = Transpose-1(r, o)
    q = Reshape-1(q0, f) special_zero=false
    s = MatMul-1(q, q) transpose_b=true
    p = SoftMax-8(s) axis=2
    a = MatMul-1(p, q)
    g = i64[4] 2 3 5 8
    a4 = Reshape-1(a, g) special_zero=false
    b = Transpose-1(a4, o)
    j = i64[3] 0 0 24
    y = Reshape-1(b, j) special_zero=true
    result y
  )");
  run_passes(*graph, test::cpu_context());
  EXPECT_EQ(count_of(*graph, "Reorder"), 0u) << "no copy";
}

// Swin: relative positions for each head, then a mask for each window.
TEST(FuseAttention, ShiftedWindows) {
  const auto graph = fused(R"(
    q = parameter f32[8,3,6,4]
    k = parameter f32[8,3,6,4]
    v = parameter f32[8,3,6,4]
    s = MatMul-1(q, k) transpose_b=true
    bias = random[1,3,6,6]
    t = Add-1(s, bias)
    split = i64[5] 2 4 3 6 6
    t5 = Reshape-1(t, split) special_zero=false
    mask = random[1,4,1,6,6]
    u5 = Add-1(t5, mask)
    join = i64[4] 8 3 6 6
    u = Reshape-1(u5, join) special_zero=false
    p = SoftMax-8(u) axis=-1
    y = MatMul-1(p, v)
    result y
  )");
  const Node& node = *find(*graph, "Attention");
  ASSERT_EQ(node.inputs.size(), 4u);
  EXPECT_EQ(node.inputs[3].node->shape(), (Shape{1, 4, 3, 6, 6})) << "one constant";
}

// YOLO11: channels before tokens, values x weights turned.
TEST(FuseAttention, ChannelsBeforeTokens) {
  const auto graph = fused(R"(
    q = parameter f32[2,3,4,9]
    k = parameter f32[2,3,4,9]
    v = parameter f32[2,3,8,9]
    o = i64[4] 0 1 3 2
    c = f32[] 0.5
    turned = Transpose-1(q, o)
    s = MatMul-1(turned, k)
    t = Multiply-1(s, c)
    p = SoftMax-8(t) axis=-1
    w = Transpose-1(p, o)
    y = MatMul-1(v, w)
    result y
  )");
  EXPECT_EQ(find(*graph, "Attention")->attributes.get_int("heads"), 1);
}

// Heads of keys that several heads of queries share are read in place.
TEST(FuseAttention, GroupedQueries) {
  const auto graph = fused(R"(
    q = parameter f32[2,6,5,8]
    k0 = parameter f32[2,2,7,8]
    v0 = parameter f32[2,2,7,8]
    one = i64[1] 2
    each = i64[5] 1 1 3 1 1
    wide = i64[4] 2 6 7 8
    k1 = Unsqueeze-1(k0, one)
    k2 = Broadcast-3(k1, each) mode=bidirectional
    k = Reshape-1(k2, wide) special_zero=false
    v1 = Unsqueeze-1(v0, one)
    v2 = Broadcast-3(v1, each) mode=bidirectional
    v = Reshape-1(v2, wide) special_zero=false
    s = MatMul-1(q, k) transpose_b=true
    p = SoftMax-8(s) axis=-1
    y = MatMul-1(p, v)
    result y
  )");
  EXPECT_EQ(count_of(*graph, "Broadcast"), 0u);
}

// ONNX: a row that sees nothing is 0.
TEST(FuseAttention, RowsThatSeeNothing) {
  const auto graph = fused(kHeads + R"(
    m = parameter f32[5,7]
    z = f32[] 0
    never = f32[] -3.4028235e38
    b = Greater-1(m, z)
    n = Select-1(b, z, never)
    s = MatMul-1(q, k) transpose_b=true
    t = Add-1(s, n)
    p = SoftMax-8(t) axis=-1
    axis = i64[1] 1
    best = ReduceMax-1(n, axis) keep_dims=true
    half = f32[] -1e38
    sees = Greater-1(best, half)
    w = Select-1(sees, p, z)
    y = MatMul-1(w, v)
    result y
  )");
  EXPECT_EQ(count_of(*graph, "Select"), 2u) << "of the mask, and of the results";
}

// A constant mask becomes numbers, or causal, where no row is hidden as a whole.
TEST(FuseAttention, ConstantMasks) {
  const std::string more = R"(
    q = parameter f32[1,2,3,8]
    low = f32[] -1e9
    s = MatMul-1(q, q) transpose_b=true
    t = Select-1(m, s, low)
    p = SoftMax-8(t) axis=-1
    y = MatMul-1(p, q)
    result y
  )";
  const auto causal =
      fused("m0 = f32[3,3] 1 0 0 1 1 0 1 1 1\nz = f32[] 0\nm = Greater-1(m0, z)\n" + more);
  EXPECT_TRUE(find(*causal, "Attention")->attributes.get_bool("causal", false));
  EXPECT_EQ(find(*causal, "Attention")->inputs.size(), 3u);
  const auto other =
      fused("m0 = f32[3,3] 1 0 1 1 1 0 1 0 1\nz = f32[] 0\nm = Greater-1(m0, z)\n" + more);
  EXPECT_EQ(find(*other, "Attention")->inputs.size(), 4u);
  EXPECT_EQ(
      attentions_in("m0 = f32[3,3] 1 0 1 0 0 0 1 0 1\nz = f32[] 0\nm = Greater-1(m0, z)\n" + more),
      0u);
}

TEST(FuseAttention, NotWhereOthersReadTheWeightsOrScores) {
  const std::string lines =
      "s = MatMul-1(q, k) transpose_b=true\np = SoftMax-8(s) axis=-1\ny = MatMul-1(p, v)\nresult "
      "y\n";
  EXPECT_EQ(attentions_in(kHeads + lines), 1u);
  EXPECT_EQ(attentions_in(kHeads + lines + "result p\n"), 0u);
  EXPECT_EQ(attentions_in(kHeads + lines + "result s\n"), 0u);
}

TEST(FuseAttention, NotOtherProducts) {
  // Over the queries, by constants, of functions of the scores.
  EXPECT_EQ(attentions_in(kHeads + "s = MatMul-1(q, k) transpose_b=true\np = SoftMax-8(s) axis=2\n"
                                   "y = MatMul-1(p, v)\nresult y\n"),
            0u);
  EXPECT_EQ(attentions_in(kHeads + "w = random[2,3,7,4]\ns = MatMul-1(q, k) transpose_b=true\n"
                                   "p = SoftMax-8(s) axis=-1\ny = MatMul-1(p, w)\nresult y\n"),
            0u);
  EXPECT_EQ(attentions_in(kHeads + "s = MatMul-1(q, k) transpose_b=true\nt = Tanh-1(s)\n"
                                   "p = SoftMax-8(t) axis=-1\ny = MatMul-1(p, v)\nresult y\n"),
            0u);
}

}  // namespace
}  // namespace clinfer
