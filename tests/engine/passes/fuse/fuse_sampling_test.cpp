// Deformable attention in the forms in which exporters write it, and what looks alike but is none.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::find;
using test::graph_of;

size_t fused_in(Graph& graph) {
  expect_same_values(graph, "fuse_attention", -1, 1);
  return count_of(graph, "DeformableAttention");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

// As torch.stack and flatten become: RT-DETR, deformable DETR. 3 heads of 4 channels, two maps of 5x4 and
// 3x2 tokens, 2 points in each, 6 queries. IMAGES, TIMES3 and AS are replaced.
const std::string kStacked = R"(
  x = parameter f32[IMAGES,26,12]
  places = parameter f32[IMAGES,6,3,2,2,2]
  scores = parameter f32[IMAGES,6,3,2,2]
  at1 = i64[] 1
  lengths = i64[2] 20 6
  v0, v1 = VariadicSplit-1(x, at1, lengths)
  turn = i64[3] 0 2 1
  t0 = Transpose-1(v0, turn)
  t1 = Transpose-1(v1, turn)
  form0 = i64[4] TIMES3 4 5 4
  form1 = i64[4] TIMES3 4 3 2
  m0 = Reshape-1(t0, form0) special_zero=false
  m1 = Reshape-1(t1, form1) special_zero=false
  at3 = i64[] 3
  first = i64[] 0
  second = i64[] 1
  g0 = Gather-8(places, first, at3) batch_dims=0
  g1 = Gather-8(places, second, at3) batch_dims=0
  heads_first = i64[5] 0 2 1 3 4
  h0 = Transpose-1(g0, heads_first)
  h1 = Transpose-1(g1, heads_first)
  grid = i64[4] TIMES3 6 2 2
  p0 = Reshape-1(h0, grid) special_zero=false
  p1 = Reshape-1(h1, grid) special_zero=false
  s0 = GridSample-9(m0, p0) align_corners=false mode=bilinear padding_mode=zeros
  s1 = GridSample-9(m1, p1) align_corners=false mode=bilinear padding_mode=zeros
  behind = i64[1] -2
  u0 = Unsqueeze-1(s0, behind)
  u1 = Unsqueeze-1(s1, behind)
  both = Concat-1(u0, u1) axis=-2
  flat = i64[4] TIMES3 4 6 4
  seen = Reshape-1(both, flat) special_zero=false
  w5 = Transpose-1(scores, heads_first)
  shared = i64[4] TIMES3 1 6 4
  w = Reshape-1(w5, shared) special_zero=false
  weighted = Multiply-1(seen, w)
  last = i64[1] -1
  sum = ReduceSum-1(weighted, last) keep_dims=false
  joined = i64[3] IMAGES 12 6
  y12 = Reshape-1(sum, joined) special_zero=false
  y = Transpose-1(y12, turn)
  result y
)";

std::string stacked(int images) {
  std::string text = kStacked;
  for (const auto& [name, value] : {std::pair{"IMAGES", images}, {"TIMES3", 3 * images}})
    while (text.find(name) != std::string::npos) text = replaced(text, name, std::to_string(value));
  return text;
}

TEST(FuseSampling, StackedMaps) {
  for (const int images : {1, 2}) {
    SCOPED_TRACE(images);
    const auto graph = graph_of(stacked(images));
    EXPECT_EQ(fused_in(*graph), 1u);
    for (const char* gone : {"GridSample", "Multiply", "ReduceSum", "Concat"})
      EXPECT_EQ(count_of(*graph, gone), 0u) << gone;
    EXPECT_EQ(find(*graph, "DeformableAttention")->shape(), (Shape{images, 6, 3, 4}));
    run_passes(*graph, test::cpu_context());
    EXPECT_EQ(count_of(*graph, "Reorder"), 0u) << "no copy";
  }
}

// D-FINE: each map has its own number of points, and the samples are joined along these.
TEST(FuseSampling, JoinedPoints) {
  const auto graph = graph_of(R"(
    a = parameter f32[6,4,5,4]
    b = parameter f32[6,4,3,2]
    places = parameter f32[6,7,5,2]
    w = parameter f32[6,1,7,5]
    at2 = i64[] 2
    counts = i64[2] 2 3
    p, q = VariadicSplit-1(places, at2, counts)
    s = GridSample-9(a, p) align_corners=true mode=bilinear padding_mode=border
    t = GridSample-9(b, q) align_corners=true mode=bilinear padding_mode=border
    seen = Concat-1(s, t) axis=3
    weighted = Multiply-1(w, seen)
    last = i64[1] 3
    sum = ReduceSum-1(weighted, last) keep_dims=true
    form = i64[3] 2 12 7
    y = Reshape-1(sum, form) special_zero=false
    result y
  )");
  EXPECT_EQ(fused_in(*graph), 1u);
  const Node& node = *find(*graph, "DeformableAttention");
  EXPECT_EQ(node.shape(), (Shape{2, 7, 3, 4}));
  EXPECT_TRUE(node.attributes.get_bool("align_corners", false));
  EXPECT_EQ(node.attributes.get_string("padding_mode", ""), "border");
}

const std::string kOneMap = R"(
  a = parameter f32[3,4,5,4]
  p = parameter f32[3,7,5,2]
  w = parameter f32[3,1,7,5]
  s = GridSample-9(a, p) align_corners=false mode=bilinear padding_mode=zeros
  weighted = Multiply-1(s, w)
  last = i64[1] 3
  y = ReduceSum-1(weighted, last) keep_dims=false
  result y
)";

TEST(FuseSampling, OneMap) {
  for (const char* kept : {"keep_dims=false", "keep_dims=true"}) {
    const auto graph = graph_of(replaced(kOneMap, "keep_dims=false", kept));
    EXPECT_EQ(fused_in(*graph), 1u);
    EXPECT_EQ(find(*graph, "DeformableAttention")->shape(), (Shape{3, 7, 1, 4}));
  }
}

TEST(FuseSampling, OthersStay) {
  const std::string others[] = {
      replaced(kOneMap, "w = parameter f32[3,1,7,5]", "w = parameter f32[3,4,7,5]"),
      replaced(kOneMap, "w = parameter f32[3,1,7,5]", "w = parameter f32[3,1,7,1]"),
      replaced(kOneMap, "last = i64[1] 3", "last = i64[1] 2"),
      replaced(kOneMap, "Multiply-1(s, w)", "Add-1(s, w)"),
      replaced(kOneMap, "ReduceSum-1", "ReduceMean-1"),
      kOneMap + "result s\n",
      kOneMap + "result weighted\n",
      replaced(stacked(1), "s1 = GridSample-9(m1, p1) align_corners=false",
               "s1 = GridSample-9(m1, p1) align_corners=true"),
      replaced(stacked(1), "u1 = Unsqueeze-1(s1, behind)",
               "r1 = ReLU-1(s1)\nu1 = Unsqueeze-1(r1, behind)"),
  };
  for (const std::string& text : others) {
    SCOPED_TRACE(text);
    const auto graph = graph_of(text);
    EXPECT_EQ(fused_in(*graph), 0u);
  }
}

}  // namespace
}  // namespace clinfer
