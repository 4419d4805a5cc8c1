// Networks on the host against the reference, operation by operation.
#include "engine/host/network.h"

#include <gtest/gtest.h>

#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::add;
using test::conv;
using test::GraphBuilder;
using test::mul;
using test::random_tensor;

// Expects the host to compute what the reference computes, on one thread and on several.
void expect_same(const Graph& graph, float low = -1, float high = 1) {
  const std::vector<Tensor> inputs = test::random_inputs(graph, low, high);
  const std::vector<Tensor> wanted = evaluate_graph(graph, inputs);
  const host::Network network(graph.clone(), true, [] {});
  for (const unsigned threads : {1u, 3u}) {
    host::Work work;
    work.threads = threads;
    work.may_go_on = [] {};
    const std::vector<Tensor> got = network.infer(work, inputs);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].shape(), wanted[i].shape());
      ASSERT_EQ(got[i].type(), wanted[i].type());
      const std::vector<float> a = got[i].to_floats(), b = wanted[i].to_floats();
      for (size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], 1e-4f * std::max(1.f, std::fabs(b[k])))
            << "output " << i << ", element " << k << ", " << threads << " threads";
    }
  }
}

using Pairs = std::map<std::string, std::string>;

struct Window {
  const char* name;
  Shape data, filter;
  const char *strides, *begin, *end, *dilations;
};

class HostConvolution : public testing::TestWithParam<Window> {};

TEST_P(HostConvolution, IsTheReference) {
  const Window& w = GetParam();
  GraphBuilder b;
  const bool grouped = w.filter.size() > w.data.size();
  const Edge x = b.op(grouped ? "GroupConvolution" : "Convolution", 1,
                      {b.parameter(w.data), b.constant(random_tensor(w.filter, -1, 1, 3))},
                      {{"strides", w.strides},
                       {"dilations", w.dilations},
                       {"pads_begin", w.begin},
                       {"pads_end", w.end}});
  const int64_t channels = x.node->shape()[1];
  Shape bias(w.data.size(), 1);
  bias[1] = channels;
  b.result(b.op("ReLU", 1, {add(b, x, b.constant(random_tensor(bias, -1, 1, 4)))}));
  expect_same(b.graph());
}

INSTANTIATE_TEST_SUITE_P(
    , HostConvolution,
    testing::Values(
        Window{"pointwise", {2, 19, 7, 9}, {13, 19, 1, 1}, "1,1", "0,0", "0,0", "1,1"},
        Window{"deep", {1, 900, 3, 5}, {8, 900, 1, 1}, "1,1", "0,0", "0,0", "1,1"},
        Window{"three", {1, 5, 30, 33}, {20, 5, 3, 3}, "1,1", "1,1", "1,1", "1,1"},
        Window{"strided", {1, 3, 31, 34}, {16, 3, 3, 3}, "2,2", "0,1", "1,0", "1,1"},
        Window{"dilated", {1, 4, 20, 17}, {7, 4, 3, 3}, "1,2", "2,2", "2,2", "2,2"},
        Window{"wide_pads", {1, 2, 4, 3}, {3, 2, 5, 5}, "1,1", "4,4", "4,4", "1,1"},
        Window{"grouped", {2, 12, 9, 8}, {3, 5, 4, 3, 3}, "1,1", "1,1", "1,1", "1,1"},
        Window{"depthwise", {2, 6, 17, 40}, {6, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "1,1"},
        Window{"depthwise_strided", {1, 6, 18, 21}, {6, 1, 1, 5, 5}, "2,2", "2,1", "2,2", "1,1"},
        Window{"depthwise_dilated", {1, 3, 12, 12}, {3, 1, 1, 3, 3}, "1,1", "3,3", "3,3", "3,3"},
        Window{"depthwise_narrow", {1, 3, 2, 2}, {3, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "1,1"},
        Window{"line", {1, 4, 50}, {6, 4, 5}, "2", "2", "2", "1"},
        Window{"volume", {1, 3, 5, 6, 7}, {4, 3, 3, 3, 3}, "1,2,1", "1,1,1", "1,1,1", "1,1,1"},
        Window{"volume_depthwise",
               {1, 3, 5, 6, 7},
               {3, 1, 1, 3, 2, 3},
               "2,1,1",
               "1,0,1",
               "1,1,1",
               "1,2,1"}),
    [](const auto& info) { return info.param.name; });

struct Spread {
  const char* name;
  Shape data, filter;
  const char *strides, *begin, *end, *extra;
};

class HostDeconvolution : public testing::TestWithParam<Spread> {};

TEST_P(HostDeconvolution, IsTheReference) {
  const Spread& s = GetParam();
  GraphBuilder b;
  const bool grouped = s.filter.size() > s.data.size();
  const Edge x = b.op(grouped ? "GroupConvolutionBackpropData" : "ConvolutionBackpropData", 1,
                      {b.parameter(s.data), b.constant(random_tensor(s.filter, -1, 1, 3))},
                      {{"strides", s.strides},
                       {"dilations", "1,1"},
                       {"pads_begin", s.begin},
                       {"pads_end", s.end},
                       {"output_padding", s.extra}});
  const int64_t channels = x.node->shape()[1];
  b.result(b.op("ReLU", 1, {add(b, x, b.constant(random_tensor({1, channels, 1, 1}, -1, 1, 4)))}));
  expect_same(b.graph());
}

INSTANTIATE_TEST_SUITE_P(
    , HostDeconvolution,
    testing::Values(Spread{"doubled", {2, 9, 7, 8}, {9, 5, 2, 2}, "2,2", "0,0", "0,0", "0,0"},
                    Spread{"overlapping", {1, 4, 6, 9}, {4, 11, 4, 3}, "2,1", "1,1", "1,1", "0,0"},
                    Spread{"padded", {1, 3, 5, 5}, {3, 2, 3, 3}, "2,2", "1,1", "1,1", "1,1"},
                    Spread{"wide", {1, 2, 5, 5}, {2, 1, 9, 9}, "3,3", "4,4", "3,3", "0,0"},
                    Spread{"grouped", {1, 6, 5, 4}, {3, 2, 4, 3, 3}, "2,2", "1,1", "1,1", "0,0"},
                    Spread{"depthwise", {1, 5, 6, 7}, {5, 1, 1, 4, 4}, "2,2", "1,1", "1,1", "0,0"}),
    [](const auto& info) { return info.param.name; });

class HostPooling : public testing::TestWithParam<std::tuple<const char*, Pairs>> {};

TEST_P(HostPooling, IsTheReference) {
  const auto& [type, attributes] = GetParam();
  GraphBuilder b;
  b.result(b.op(type, 1, {b.parameter({2, 3, 11, 14})}, attributes));
  expect_same(b.graph());
}

Pairs window(const char* kernel, const char* strides, const char* begin, const char* end,
             const char* rounding, const char* exclude = nullptr) {
  Pairs pairs{{"kernel", kernel},
              {"strides", strides},
              {"pads_begin", begin},
              {"pads_end", end},
              {"rounding_type", rounding}};
  if (exclude) pairs["exclude-pad"] = exclude;
  return pairs;
}

INSTANTIATE_TEST_SUITE_P(
    , HostPooling,
    testing::Values(std::tuple{"MaxPool", window("2,2", "2,2", "0,0", "0,0", "floor")},
                    std::tuple{"MaxPool", window("3,3", "2,2", "1,1", "1,1", "ceil")},
                    std::tuple{"AvgPool", window("3,3", "1,2", "1,1", "1,1", "floor", "true")},
                    std::tuple{"AvgPool", window("3,3", "2,2", "1,1", "1,1", "ceil", "false")},
                    std::tuple{"AvgPool", window("11,14", "1,1", "0,0", "0,0", "floor", "true")}));

struct Matrices {
  Shape a, b;
  bool transpose_a, transpose_b, constant;
};

class HostProduct : public testing::TestWithParam<Matrices> {};

TEST_P(HostProduct, IsTheReference) {
  const Matrices& m = GetParam();
  GraphBuilder b;
  const Edge a = b.parameter(m.a);
  const Edge other = m.constant ? b.constant(random_tensor(m.b, -1, 1, 3)) : b.parameter(m.b);
  b.result(b.op("Sigmoid", 1,
                {b.op("MatMul", 1, {a, other},
                      {{"transpose_a", m.transpose_a ? "true" : "false"},
                       {"transpose_b", m.transpose_b ? "true" : "false"}})}));
  expect_same(b.graph());
}

INSTANTIATE_TEST_SUITE_P(, HostProduct,
                         testing::Values(Matrices{{1, 70}, {33, 70}, false, true, true},
                                         Matrices{{1, 70}, {70, 33}, false, false, true},
                                         Matrices{{2, 70}, {70, 33}, false, false, false},
                                         Matrices{{20, 500}, {500, 90}, false, false, true},
                                         Matrices{{500, 20}, {90, 500}, true, true, false},
                                         Matrices{{2, 3, 9, 17}, {3, 17, 40}, false, false, false},
                                         Matrices{
                                             {2, 1, 9, 17}, {2, 5, 17, 6}, false, false, false},
                                         Matrices{{17}, {17, 6}, false, false, true},
                                         Matrices{{9, 17}, {17}, false, false, false}));

TEST(HostNetwork, DecompressesWeights) {
  for (const int64_t rows : {1, 20}) {
    GraphBuilder b;
    const Edge codes = b.constant(test::random_ints(ElementType::u8, {70, 32}, 0, 255, 2)),
               scales = b.constant(random_tensor({70, 4}, 0.01f, 0.1f, 3)),
               zeros = b.constant(random_tensor({70, 4}, 0, 15, 4));
    const Edge x = b.op("CompressedMatMul", 1, {b.parameter({2, rows, 64}), codes, scales, zeros},
                        {{"bits", "4"}});
    b.result(b.op("Sigmoid", 1, {add(b, x, b.constant(random_tensor({70}, -1, 1, 5)))}));
    expect_same(b.graph());
  }
}

TEST(HostNetwork, AppliesTailsOfAllShapes) {
  GraphBuilder b;
  const Edge in = b.parameter({2, 6, 5, 7});
  const Edge x = conv(b, in, 6, 10, 3, "1,1", 1);
  // A number, a number per channel, per row, per column and per place, and another tensor.
  Edge y = mul(b, x, b.number(0.5f));
  y = add(b, y, b.constant(random_tensor({1, 10, 1, 1}, -1, 1, 2)));
  y = mul(b, b.constant(random_tensor({5, 1}, -1, 1, 3)), y);
  y = b.op("Swish", 4, {y});
  y = add(b, y, b.constant(random_tensor({7}, -1, 1, 4)));
  y = b.op("Subtract", 1, {b.constant(random_tensor({1, 1, 5, 7}, -1, 1, 5)), y});
  y = b.op("Tanh", 1, {y});
  y = b.op("Power", 1, {b.number(2), y});
  b.result(add(b, y, conv(b, in, 6, 10, 1, "0,0", 6)));
  expect_same(b.graph());
}

// A value that others read is kept in the midst of a tail, also where it goes on by itself.
TEST(HostNetwork, KeepsWhatOthersRead) {
  GraphBuilder b;
  const Edge x = conv(b, b.parameter({1, 16, 6, 6}), 16, 16, 3, "1,1", 1);
  const auto factor = [&](unsigned seed) {
    return b.constant(random_tensor({1, 16, 1, 1}, 1, 2, seed));
  };
  b.result(mul(b, b.op("ReLU", 1, {x}), factor(3)));
  b.result(b.op("ReLU", 1, {mul(b, b.op("Negative", 1, {x}), factor(4))}));
  b.result(x);
  expect_same(b.graph());
}

TEST(HostNetwork, ComputesElementFunctionsAlone) {
  GraphBuilder b;
  const Edge x = b.parameter({2, 3, 4, 5}), y = b.parameter({3, 1, 5});
  b.result(b.op("Exp", 1, {x}));
  b.result(b.op("Maximum", 1, {x, y}));
  b.result(b.op("Subtract", 1, {y, x}));
  b.result(b.op("FakeQuantize", 1, {x, b.number(-1), b.number(1), b.number(-1), b.number(1)},
                {{"levels", "256"}}));
  expect_same(b.graph());
}

// An operation without a quick version runs by its reference, followed by its tail.
TEST(HostNetwork, TakesTheReferenceForTheRest) {
  GraphBuilder b;
  const Edge x = b.parameter({1, 8, 6, 6});
  const Edge up = b.op("DepthToSpace", 1, {x}, {{"block_size", "2"}, {"mode", "depth_first"}});
  const Edge all = b.op("Concat", 1, {up, mul(b, up, b.number(2))}, {{"axis", "1"}});
  const Edge mean = b.op("ReduceMean", 1, {all, b.ints({2, 3})}, {{"keep_dims", "true"}});
  b.result(b.op("SoftMax", 8, {mul(b, all, mean)}, {{"axis", "1"}}));
  b.result(b.op(
      "TopK", 3,
      {test::reshape(b, all, {4, 144}), b.constant(Tensor::of<int64_t>(ElementType::i64, {}, {5}))},
      {{"axis", "1"}, {"mode", "max"}, {"sort", "value"}, {"index_element_type", "i32"}}, 2));
  expect_same(b.graph());
}

TEST(HostNetwork, EndsWhereItIsToldTo) {
  GraphBuilder b;
  b.result(conv(b, b.parameter({1, 16, 64, 64}), 16, 16, 3, "1,1", 1));
  const host::Network network(b.finish(), true, [] {});
  const std::vector<Tensor> inputs{random_tensor({1, 16, 64, 64}, -1, 1, 7)};
  for (const unsigned threads : {1u, 3u}) {
    std::atomic<int> asked{0};
    host::Work work;
    work.threads = threads;
    work.may_go_on = [&] {
      if (++asked > 3) throw Error(ErrorCode::cancelled, "enough");
    };
    EXPECT_THROW(network.infer(work, inputs), Error);
  }
  GraphBuilder other;
  other.result(conv(other, other.parameter({1, 16, 64, 64}), 16, 16, 3, "1,1", 1));
  EXPECT_THROW(
      host::Network(other.finish(), true, [] { throw Error(ErrorCode::cancelled, "enough"); }),
      Error);
}

}  // namespace
}  // namespace clinfer
