// Means by the probabilities of a SoftMax, in the ways in which detectors write them, and what looks
// alike but is none.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::count_of;
using test::expect_same_values;
using test::graph_of;

// How many SoftMaxMeans `lines` become, of which the last one makes y; the values stay the same.
size_t means_of(const std::string& shape, const std::string& lines) {
  const auto graph = graph_of("x = parameter f32" + shape + "\n" + lines + "\nresult y\n");
  expect_same_values(*graph, "fuse_distributions");
  const size_t means = count_of(*graph, "SoftMaxMean");
  // Nothing of the three operations is left.
  if (means > 0) {
    EXPECT_EQ(count_of(*graph, "SoftMax"), 0u);
    EXPECT_EQ(count_of(*graph, "Multiply"), 0u);
    EXPECT_EQ(count_of(*graph, "Convolution"), 0u);
  }
  return means;
}

const std::string kOneByOne = " strides=1,1 dilations=1,1 pads_begin=0,0 pads_end=0,0\n";

// As YOLOv8 is exported.
TEST(FuseDistributions, ByConvolution) {
  EXPECT_EQ(means_of("[2,4,16,9]", R"(
    order = i64[4] 0 2 1 3
    t = Transpose-1(x, order)
    p = SoftMax-8(t) axis=1
    w = random[1,16,1,1]
    y = Convolution-1(p, w))" + kOneByOne),
            1u);
}

// As NanoDet and PP-YOLOE are exported.
TEST(FuseDistributions, ByProduct) {
  for (const std::string numbers : {"[8]", "[8,1]"})
    EXPECT_EQ(means_of("[2,5,4,8]",
                       "p = SoftMax-8(x) axis=-1\nw = random" + numbers + "\ny = MatMul-1(p, w)"),
              1u)
        << numbers;
  EXPECT_EQ(means_of("[5,8]",
                     "p = SoftMax-1(x)\nw = random[1,8]\n"
                     "y = MatMul-1(p, w) transpose_b=true"),
            1u);
}

TEST(FuseDistributions, BySum) {
  for (const std::string keep : {"true", "false"}) {
    const std::string sum = "\naxes = i64[1] 2\ny = ReduceSum-1(q, axes) keep_dims=" + keep;
    EXPECT_EQ(means_of("[2,4,16,9]",
                       "p = SoftMax-8(x) axis=2\nw = random[16,1]\n"
                       "q = Multiply-1(p, w)" +
                           sum),
              1u);
    EXPECT_EQ(means_of("[2,4,16,9]",
                       "p = SoftMax-8(x) axis=2\nw = random[1,1,16,1]\n"
                       "q = Multiply-1(w, p)" +
                           sum),
              1u);
    // The numbers vary along another axis.
    EXPECT_EQ(means_of("[2,16,16,16]",
                       "p = SoftMax-8(x) axis=2\nw = random[16]\n"
                       "q = Multiply-1(p, w)" +
                           sum),
              0u);
    EXPECT_EQ(means_of("[2,16,16,16]",
                       "p = SoftMax-8(x) axis=1\nw = random[16,1]\n"
                       "q = Multiply-1(p, w)" +
                           sum),
              0u);
  }
}

TEST(FuseDistributions, NotOtherConvolutions) {
  const std::string softmax = "p = SoftMax-8(x) axis=1\n";
  for (const std::string& line :
       std::vector<std::string>{"w = random[2,8,1,1]\ny = Convolution-1(p, w)" + kOneByOne,
                                "w = random[1,8,3,3]\ny = Convolution-1(p, w) strides=1,1 "
                                "dilations=1,1 pads_begin=1,1 pads_end=1,1\n",
                                "w = random[1,8,1,1]\ny = Convolution-1(p, w) strides=2,1 "
                                "dilations=1,1 pads_begin=0,0 pads_end=0,0\n"})
    EXPECT_EQ(means_of("[1,8,5,4]", softmax + line), 0u) << line;
  EXPECT_EQ(means_of("[1,8,5,4]",
                     "p = SoftMax-8(x) axis=2\nw = random[1,8,1,1]\n"
                     "y = Convolution-1(p, w)" +
                         kOneByOne),
            0u);
}

// A reader of the probabilities needs the SoftMax anyhow.
TEST(FuseDistributions, NotWhereOthersReadTheProbabilities) {
  const auto graph = graph_of(R"(
    x = parameter f32[3,8]
    w = random[8,1]
    p = SoftMax-8(x) axis=1
    y = MatMul-1(p, w)
    result y
    result p
  )");
  expect_same_values(*graph, "fuse_distributions");
  EXPECT_EQ(count_of(*graph, "SoftMaxMean"), 0u);
}

}  // namespace
}  // namespace clinfer
