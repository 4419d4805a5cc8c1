// Rows of channels that slices, transposes and concats put into another order are one Gather.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;
using test::integers;

Edge shaped(GraphBuilder& b, const Edge& x, const std::vector<int64_t>& shape) {
  return b.op("Reshape", 1, {x, integers(b, shape)}, {{"special_zero", "false"}});
}

// Shifts a picture [2, 6, 6, C] of tokens by (2, 2), as windows of 3 x 3, squared; or back.
std::unique_ptr<Graph> shifted(int64_t channels, bool back) {
  GraphBuilder b;
  const auto roll = [&](const Edge& x) {
    const int64_t by = back ? 2 : -2;
    return b.op("Roll", 7, {x, integers(b, {by, by}), integers(b, {1, 2})});
  };
  const Edge order = integers(b, {0, 1, 3, 2, 4, 5});
  Edge x = b.parameter(back ? Shape{8, 9, channels} : Shape{2, 36, channels});
  x = b.op("Multiply", 1, {x, x}, {{"auto_broadcast", "numpy"}});
  if (back) {
    x = b.op("Transpose", 1, {shaped(b, x, {2, 2, 2, 3, 3, channels}), order});
    x = shaped(b, roll(shaped(b, x, {2, 6, 6, channels})), {2, 36, channels});
  } else {
    x = shaped(b, roll(shaped(b, x, {2, 6, 6, channels})), {2, 2, 3, 2, 3, channels});
    x = shaped(b, b.op("Transpose", 1, {x, order}), {8, 9, channels});
  }
  b.result(b.op("Sigmoid", 1, {x}));
  return b.finish();
}

TEST(GatherRows, ShiftedWindowsAreOneGather) {
  for (const bool back : {false, true}) {
    auto graph = shifted(16, back);
    expect_same_values(*graph, "gather_rows");
    EXPECT_EQ(count_of(*graph, "Gather"), 1u);
    EXPECT_EQ(count_of(*graph, "Concat"), 0u);
    EXPECT_EQ(count_of(*graph, "Transpose"), 0u);
  }
}

TEST(GatherRows, ShortRowsStay) {
  auto graph = shifted(4, false);
  expect_same_values(*graph, "gather_rows");
  EXPECT_EQ(count_of(*graph, "Gather"), 0u);
}

TEST(GatherRows, RowsOfSeveralTensorsStay) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 4, 16}), y = b.parameter({1, 4, 16});
  b.result(b.op("Concat", 1, {x, y}, {{"axis", "1"}}));
  auto graph = b.finish();
  expect_same_values(*graph, "gather_rows");
  EXPECT_EQ(count_of(*graph, "Concat"), 1u);
}

TEST(GatherRows, AValueThatIsReadOnTheWayStays) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 6, 16});
  const Edge rolled = b.op("Roll", 7, {x, integers(b, {2}), integers(b, {1})});
  b.result(rolled);
  b.result(shaped(b, rolled, {2, 3, 16}));
  auto graph = b.finish();
  expect_same_values(*graph, "gather_rows");
  EXPECT_EQ(count_of(*graph, "Gather"), 1u);
}

}  // namespace
}  // namespace clinfer
