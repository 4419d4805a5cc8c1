// Pads folded into convolutions and poolings.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::add;
using test::count_of;
using test::expect_same_values;
using test::GraphBuilder;
using test::random_tensor;
using test::unary;

Edge pad(GraphBuilder& b, Edge x, const std::vector<int64_t>& begin,
         const std::vector<int64_t>& end, float value = 0, const char* mode = "constant") {
  return b.op("Pad", 1, {x, b.ints(begin), b.ints(end), b.number(value)}, {{"pad_mode", mode}});
}

Edge conv(GraphBuilder& b, Edge x, const char* auto_pad = "explicit") {
  return b.op("Convolution", 1, {x, b.constant(random_tensor({4, 3, 3, 3}, -1, 1, 5))},
              {{"strides", "2,2"},
               {"dilations", "1,1"},
               {"pads_begin", "0,0"},
               {"pads_end", "1,1"},
               {"auto_pad", auto_pad}});
}

Edge pool(GraphBuilder& b, const char* type, Edge x, const char* pads = "0,0",
          const char* exclude = "true", const char* rounding = "floor") {
  return b.op(type, 1, {x},
              {{"kernel", "3,3"},
               {"strides", "2,2"},
               {"pads_begin", pads},
               {"pads_end", pads},
               {"exclude-pad", exclude},
               {"rounding_type", rounding}});
}

template <typename Build>
void expect_pads(size_t left, Build&& build) {
  GraphBuilder b;
  b.result(build(b, b.parameter({1, 3, 8, 9})));
  auto graph = b.finish();
  expect_same_values(*graph, "fold_padding");
  EXPECT_EQ(count_of(*graph, "Pad"), left);
}

TEST(FoldPadding, IntoConvolutions) {
  for (const char* mode : {"explicit", "valid", "same_upper", "same_lower"})
    expect_pads(0, [&](GraphBuilder& b, Edge x) {
      return conv(b, pad(b, x, {0, 0, 1, 2}, {0, 0, 2, 0}), mode);
    });
  expect_pads(0, [](GraphBuilder& b, Edge x) {
    return b.op(
        "GroupConvolution", 1,
        {pad(b, x, {0, 0, 1, 1}, {0, 0, 0, 0}),
         b.constant(random_tensor({3, 1, 1, 3, 3}, -1, 1, 5))},
        {{"strides", "1,1"}, {"dilations", "2,2"}, {"pads_begin", "1,0"}, {"pads_end", "0,0"}});
  });
}

TEST(FoldPadding, BehindAQuantisationThatKeepsZeros) {
  const auto through = [](float low, float high, size_t left) {
    expect_pads(left, [&](GraphBuilder& b, Edge x) {
      const Edge from = b.number(low), to = b.number(high);
      x = pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1});
      return conv(b, b.op("FakeQuantize", 1, {x, from, to, from, to}, {{"levels", "256"}}));
    });
  };
  through(-2, 1.984375f, 0);
  through(0, 3, 0);
  through(-2, 2.1f, 1);  // 0 lies between two levels
  through(1, 3, 1);
}

TEST(FoldPadding, IntoPoolings) {
  for (const char* rounding : {"floor", "ceil"}) {
    expect_pads(0, [&](GraphBuilder& b, Edge x) {  // zeros beside what is never negative
      x = pad(b, unary(b, "ReLU", x), {0, 0, 1, 0}, {0, 0, 0, 1});
      return pool(b, "MaxPool", x, "0,0", "true", rounding);
    });
    // Rounded up, the last window sees less than nine, and with pads would count nine.
    for (const char* exclude : {"true", "false"})
      expect_pads(rounding[0] == 'c', [&](GraphBuilder& b, Edge x) {
        return pool(b, "AvgPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 0}), "0,0", exclude, rounding);
      });
  }
  expect_pads(0, [](GraphBuilder& b, Edge x) {
    return pool(b, "MaxPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, -3.4e38f));
  });
}

TEST(FoldPadding, LeavesWhatMeansSomethingElse) {
  const auto stays = [](auto&& build) { expect_pads(1, build); };
  stays([](GraphBuilder& b, Edge x) {  // not zeros
    return conv(b, pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0.5f));
  });
  stays([](GraphBuilder& b, Edge x) {
    return conv(b, pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0, "edge"));
  });
  stays([](GraphBuilder& b, Edge x) {  // a maximum with zeros
    return pool(b, "MaxPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}));
  });
  stays([](GraphBuilder& b, Edge x) {  // windows that see nothing else
    return pool(b, "MaxPool", pad(b, unary(b, "ReLU", x), {0, 0, 3, 0}, {0, 0, 0, 0}));
  });
  stays([](GraphBuilder& b, Edge x) {  // the Pad's zeros count, the pool's own do not
    return pool(b, "AvgPool", pad(b, x, {0, 0, 1, 1}, {0, 0, 1, 1}), "1,1", "true");
  });
  stays([](GraphBuilder& b, Edge x) {  // along channels
    return pool(b, "AvgPool", pad(b, x, {0, 1, 0, 0}, {0, 0, 0, 0}));
  });
}

TEST(FoldPadding, OfChannelsIntoTheSum) {
  const auto blaze_face = [](const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                             float value = 0) {
    GraphBuilder b;
    const Edge x = unary(b, "ReLU", b.parameter({1, 6, 5, 4}));
    const Edge y = b.op(
        "Convolution", 1, {x, b.constant(random_tensor({9, 6, 3, 3}, -1, 1, 5))},
        {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
    b.result(unary(b, "ReLU", add(b, pad(b, x, begin, end, value), y)));
    auto graph = b.finish();
    expect_same_values(*graph, "fuse_tails");
    EXPECT_EQ(count_of(*graph, "Add") + count_of(*graph, "ReLU"), 1u);
    return count_of(*graph, "Pad");
  };
  EXPECT_EQ(blaze_face({0, 0, 0, 0}, {0, 3, 0, 0}), 0u);
  EXPECT_EQ(blaze_face({0, 3, 0, 0}, {0, 0, 0, 0}), 1u);     // in front
  EXPECT_EQ(blaze_face({0, 1, 0, 0}, {0, 2, 0, 0}), 1u);     // on both sides
  EXPECT_EQ(blaze_face({0, 0, 0, 0}, {0, 3, 0, 0}, 1), 1u);  // ones
}

}  // namespace
}  // namespace clinfer
