// Models as quantisers and converters write them, against values computed by hand or by the same
// network in another form. tests/engine/onnx/quantised_mixes.py compares many with ONNX Runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "engine/passes/passes.h"
#include "tests/engine/onnx/onnx_results.h"

namespace clinfer {
namespace {

using T = onnx::TensorProto;
constexpr const char* kMicrosoft = "com.microsoft";

std::vector<float> counted(size_t count, float step = 1, float first = 0) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(first + step * static_cast<float>(i % 23));
  return values;
}
T bytes(const std::string& name, const Shape& shape, const std::vector<int>& values,
        int type = T::UINT8) {
  T tensor = OnnxBuilder::of(name, shape, type);
  for (int value : values) tensor.add_int32_data(value);
  return tensor;
}

size_t count_of(const OnnxModel& model, const std::string& type) {
  const auto& nodes = model.graph->nodes();
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n->is(type); }));
}

// ONNX Runtime writes scales of tensors as lists of one element, for values of one dimension too,
// where axis 1 is not there.
TEST(OnnxQuantised, AScaleOfOneElementIsForTheWholeValue) {
  for (const int opset : {11, 13, 21}) {
    OnnxBuilder b(opset);
    b.input("x", {1, 2, 1, 2});
    b.initialiser(OnnxBuilder::floats("s", {1}, {0.5f}));
    b.initialiser(bytes("z", {1}, {3}));
    b.initialiser(bytes("bias", {2}, {4, 10}, T::INT32));
    b.initialiser(OnnxBuilder::floats("t", {1}, {0.25f}));
    b.initialiser(bytes("w", {2, 2, 1, 1}, {1, 0, -1, 2}, T::INT8));
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    b.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    b.node("DequantizeLinear", {"w", "t"}, {"e"});
    b.node("DequantizeLinear", {"bias", "t"}, {"f"});
    b.node("Conv", {"d", "e", "f"}, {"y"});
    b.output("y");
    EXPECT_EQ(count_of(b.read(), "FakeQuantize"), 1u) << opset;
    expect_near(results(b, {floats({1, 2, 1, 2}, {1, 2, 3, 4})})[0], {1.25f, 1.5f, 3.75f, 4.f});
  }
}

TEST(OnnxQuantised, HalvesAreRoundedBeforeTheZeroPointIsAdded) {
  for (const int zero : {128, 127, 3, 0}) {
    OnnxBuilder b(13);
    b.input("x", {6});
    b.initialiser(OnnxBuilder::floats("s", {}, {0.1f}));
    b.initialiser(bytes("z", {}, {zero}));
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    b.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    b.output("y");
    std::vector<float> x, wanted;
    for (const float steps : {0.5f, 1.5f, 2.5f, 3.5f, 100.5f, 300.f}) {
      x.push_back(steps * 0.1f);
      const float level =
          std::min(std::nearbyint(x.back() / 0.1f), 255.f - static_cast<float>(zero));
      wanted.push_back(level * 0.1f);
    }
    EXPECT_EQ(count_of(b.read(), "FakeQuantize"), 1u);
    expect_near(results(b, {floats({6}, x)})[0], wanted);
  }
}

// [N, H, W, C], with as many channels as rows.
TEST(OnnxQuantised, PicturesWithTheChannelsLast) {
  const auto network = [](bool last, const char* type) {
    OnnxBuilder b(13);
    b.import(kMicrosoft, 1);
    b.input("x", {1, 3, 3, 3}, T::UINT8);
    for (const auto& [name, scale] : {std::pair{"xs", 0.02f}, {"ws", 0.01f}, {"ys", 0.05f}})
      b.initialiser(OnnxBuilder::floats(name, {}, {scale}));
    b.initialiser(bytes("xz", {}, {100}));
    b.initialiser(bytes("yz", {}, {128}));
    std::vector<int> weights;
    for (int i = 0; i < 12; ++i) weights.push_back(i * 21 % 100 - 50);
    b.initialiser(bytes("w", {4, 3, 1, 1}, weights, T::INT8));
    b.initialiser(bytes("wz", {}, {0}, T::INT8));
    std::string from = "x";
    if (!last) {
      set(b.node("Transpose", {"x"}, {"turned"}), "perm", std::vector<int64_t>{0, 3, 1, 2});
      from = "turned";
    }
    const bool conv = std::string_view(type) == "QLinearConv",
               pool = std::string_view(type) == "NhwcMaxPool";
    auto& node =
        conv   ? b.node(type, {from, "xs", "xz", "w", "ws", "wz", "ys", "yz"}, {"y"}, kMicrosoft)
        : pool ? b.node(last ? type : "MaxPool", {from}, {"y"}, last ? kMicrosoft : "")
               : b.node(type, {from, "xs", "xz", "ys", "yz"}, {"y"}, kMicrosoft);
    if (!conv) set(node, "kernel_shape", std::vector<int64_t>{2, 2});
    if (last && !pool) set(node, "channels_last", 1);
    if (!last) {
      set(b.node("Transpose", {"y"}, {"back"}), "perm", std::vector<int64_t>{0, 2, 3, 1});
      b.output("back");
    } else {
      b.output("y");
    }
    std::vector<int> x;
    for (int i = 0; i < 27; ++i) x.push_back(i * 37 % 256);
    return results(b, {Tensor::of(ElementType::u8, {1, 3, 3, 3}, x)})[0];
  };
  for (const char* type :
       {"QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool", "NhwcMaxPool"}) {
    const Tensor got = network(true, type), wanted = network(false, type);
    EXPECT_EQ(got.shape(), wanted.shape()) << type;
    EXPECT_EQ(got.to_floats(), wanted.to_floats()) << type;
  }
}

// Between two quantised operations that bytes only pass through, nothing is a chain of steps.
TEST(OnnxQuantised, WhatMovesBytesStaysBetweenFakeQuantizes) {
  OnnxBuilder b(13);
  b.input("x", {1, 1, 4, 4});
  b.initialiser(OnnxBuilder::floats("s", {}, {0.5f}));
  b.initialiser(bytes("z", {}, {3}));
  b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  set(b.node("MaxPool", {"q"}, {"m"}), "kernel_shape", std::vector<int64_t>{2, 2});
  set(b.node("Transpose", {"m"}, {"t"}), "perm", std::vector<int64_t>{0, 1, 3, 2});
  b.node("DequantizeLinear", {"t", "s", "z"}, {"y"});
  b.output("y");
  const OnnxModel model = b.read();
  EXPECT_EQ(count_of(model, "FakeQuantize"), 1u);
  EXPECT_EQ(count_of(model, "Convert"), 0u);
  expect_near(
      evaluate_graph(*model.graph, std::vector{floats({1, 1, 4, 4}, counted(16, 0.5f, -1))})[0],
      {1.5f, 3.5f, 5.5f, 2.f, 4.f, 6.f, 2.5f, 4.5f, 6.5f});
}

TEST(OnnxQuantised, SoftmaxBeforeOpset13JoinsDimensions) {
  OnnxBuilder b(12);
  b.import(kMicrosoft, 1);
  b.input("x", {1, 2, 2}, T::UINT8);
  b.initialiser(OnnxBuilder::floats("s", {}, {1.f}));
  b.initialiser(OnnxBuilder::floats("t", {}, {1 / 256.f}));
  b.initialiser(bytes("z", {}, {0}));
  auto& node = b.node("QLinearSoftmax", {"x", "s", "z", "t", "z"}, {"y"}, kMicrosoft);
  set(node, "opset", 12);
  set(node, "axis", 1);
  b.output("y");
  expect_near(results(b, {Tensor::of(ElementType::u8, {1, 2, 2}, std::vector<int>{5, 5, 5, 5})})[0],
              {64, 64, 64, 64});
}

TEST(OnnxQuantised, WeightsOfFewBits) {
  OnnxBuilder b;
  b.import(kMicrosoft, 1);
  b.input("x", {1, 20});
  std::vector<int> packed;  // two rows of two blocks of 16
  for (int i = 0; i < 32; ++i) packed.push_back(i * 7 % 256);
  b.initialiser(bytes("b", {2, 2, 8}, packed));
  b.initialiser(OnnxBuilder::floats("s", {4}, {0.5f, 1, 2, 0.25f}));
  b.initialiser(bytes("z", {2}, {0x53, 0x8a}));
  b.initialiser(OnnxBuilder::floats("bias", {2}, {10, -10}));
  auto& node = b.node("MatMulNBits", {"x", "b", "s", "z", "", "bias"}, {"y"}, kMicrosoft);
  for (const auto& [name, value] : {std::pair{"K", 20}, {"N", 2}, {"bits", 4}, {"block_size", 16}})
    set(node, name, int64_t{value});
  b.output("y");
  const std::vector<float> scales{0.5f, 1, 2, 0.25f}, zeros{3, 5, 10, 8};
  std::vector<float> x = counted(20, 0.25f, -2), wanted{10, -10};
  for (size_t r = 0; r < 2; ++r)
    for (size_t k = 0; k < 20; ++k) {
      const size_t block = r * 2 + k / 16;
      const int pair = packed[block * 8 + k % 16 / 2];
      wanted[r] +=
          x[k] * (static_cast<float>(k % 2 ? pair >> 4 : pair & 15) - zeros[block]) * scales[block];
    }
  expect_near(results(b, {floats({1, 20}, x)})[0], wanted, 1e-3f);
}

// Blocks that fill the rows stay compressed.
TEST(OnnxQuantised, WeightsOfFewBitsStayCompressed) {
  const auto network = [](bool compressed) {
    OnnxBuilder b(21);
    b.import(kMicrosoft, 1);
    b.input("x", {1, 32});
    std::vector<int> values;
    for (int i = 0; i < 64; ++i) values.push_back(i * 7 % 16);
    if (compressed) {
      std::vector<int> packed;
      for (size_t i = 0; i < 64; i += 2) packed.push_back(values[i] | values[i + 1] << 4);
      b.initialiser(bytes("b", {2, 2, 8}, packed));
      b.initialiser(OnnxBuilder::floats("s", {4}, {0.5f, 1, 2, 0.25f}));
      auto& node = b.node("MatMulNBits", {"x", "b", "s"}, {"y"}, kMicrosoft);
      for (const auto& [name, value] :
           {std::pair{"K", 32}, {"N", 2}, {"bits", 4}, {"block_size", 16}})
        set(node, name, int64_t{value});
    } else {  // the same by DequantizeLinear
      b.initialiser(bytes("b", {2, 32}, values));
      b.initialiser(OnnxBuilder::floats("s", {2, 2}, {0.5f, 1, 2, 0.25f}));
      b.initialiser(bytes("z", {2, 2}, {8, 8, 8, 8}));
      auto& node = b.node("DequantizeLinear", {"b", "s", "z"}, {"w"});
      set(node, "axis", 1);
      set(node, "block_size", 16);
      auto& product = b.node("Gemm", {"x", "w"}, {"y"});
      set(product, "transB", 1);
    }
    b.output("y");
    return b;
  };
  PassContext context;
  context.traits.is_cpu = true;
  for (const bool compressed : {false, true}) {
    const OnnxModel model = network(compressed).read();
    run_passes(*model.graph, context, "keep_compressed");
    EXPECT_EQ(count_of(model, "CompressedMatMul"), 1u);
  }
  const Tensor x = floats({1, 32}, counted(32, 0.25f, -2));
  OnnxBuilder by_bits = network(true), by_blocks = network(false);
  expect_near(results(by_bits, {x})[0], results(by_blocks, {x})[0].to_floats(), 1e-4f);
}

TEST(OnnxQuantised, ComputesNoValuesOfFourBits) {
  constexpr int kInt4 = 22;
  OnnxBuilder cast(21), quantised(21);
  for (OnnxBuilder* b : {&cast, &quantised}) {
    b->input("x", {4});
    b->initialiser(OnnxBuilder::floats("s", {}, {0.5f}));
    b->initialiser(bytes("z", {}, {0}, kInt4));
    b->output("y");
  }
  set(cast.node("Cast", {"x"}, {"y"}), "to", kInt4);
  quantised.node("QuantizeLinear", {"x", "s", "z"}, {"y"});
  for (const OnnxBuilder* b : {&cast, &quantised})
    EXPECT_NE(refusal(*b).find("values of 4 bits are only supported as constants"),
              std::string::npos);
}

TEST(OnnxQuantised, FloatsOfEightBits) {
  constexpr int kFloat8E4M3FN = 17, kFloat8E5M2Number = 19;
  OnnxBuilder b(21);
  b.input("x", {4});
  b.initialiser(OnnxBuilder::floats("s", {}, {0.5f}));
  b.initialiser(bytes("z", {}, {0}, kFloat8E4M3FN));
  b.initialiser(bytes("w", {4}, {0x38, 0x7e, 0x01, 0xc0}, kFloat8E4M3FN));
  b.initialiser(bytes("t", {1}, {0}, kFloat8E5M2Number));
  b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  b.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  b.node("DequantizeLinear", {"w", "s"}, {"e"});
  set(b.node("Cast", {"x"}, {"c"}), "to", kFloat8E5M2Number);
  b.node("CastLike", {"x", "t"}, {"l"});
  auto& plain = b.node("QuantizeLinear", {"x", "s"}, {"p"});
  set(plain, "output_dtype", kFloat8E5M2Number);
  set(plain, "saturate", 0);
  for (const char* name : {"d", "e", "c", "l", "p"}) b.output(name);
  const auto got = results(b, {floats({4}, {1.1f, 300, -1e6f, 0.3f})});
  expect_near(got[0], {1.125f, 224, -224, 0.3125f}, 0);
  expect_near(got[1], {0.5f, 224, 0.0009765625f, -1}, 0);
  expect_near(got[2], {1, 320, -57344, 0.3125f}, 0);
  expect_near(got[3], {1, 320, -57344, 0.3125f}, 0);
  EXPECT_EQ(got[4].to_floats(),
            (std::vector<float>{2, 640, -std::numeric_limits<float>::infinity(), 0.625f}));
}

TEST(OnnxQuantised, LstmOfBytes) {
  const auto network = [](bool quantised) {
    OnnxBuilder b(14);
    b.import(kMicrosoft, 1);
    b.input("x", {3, 1, 2});
    std::vector<int> w, r;
    for (int i = 0; i < 24; ++i) w.push_back(i * 5 % 40 - 20);
    for (int i = 0; i < 36; ++i) r.push_back(i * 11 % 40 - 20);
    if (quantised) {
      b.initialiser(bytes("w", {1, 2, 12}, w, T::INT8));
      b.initialiser(bytes("r", {1, 3, 12}, r, T::INT8));
      b.initialiser(OnnxBuilder::floats("s", {1}, {0.05f}));
      b.initialiser(bytes("z", {1}, {2}, T::INT8));
      auto& node =
          b.node("DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"},
                 {"y"}, kMicrosoft);
      set(node, "hidden_size", 3);
    } else {
      std::vector<float> wf, rf;
      for (int c = 0; c < 12; ++c) {
        for (int k = 0; k < 2; ++k)
          wf.push_back(static_cast<float>((k * 12 + c) * 5 % 40 - 22) * 0.05f);
        for (int k = 0; k < 3; ++k)
          rf.push_back(static_cast<float>((k * 12 + c) * 11 % 40 - 22) * 0.05f);
      }
      b.initialiser(OnnxBuilder::floats("w", {1, 12, 2}, wf));
      b.initialiser(OnnxBuilder::floats("r", {1, 12, 3}, rf));
      set(b.node("LSTM", {"x", "w", "r"}, {"y"}), "hidden_size", 3);
    }
    b.output("y");
    return results(b, {floats({3, 1, 2}, {1, -1, 0.5f, 2, -0.3f, 0.1f})})[0].to_floats();
  };
  const std::vector<float> got = network(true), wanted = network(false);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f) << i;
}

// Converters to float16 leave casts at the end; bodies read values that are made later, too.
TEST(OnnxQuantised, NodesMayStandInAnyOrder) {
  OnnxBuilder b;
  b.input("x", {2});
  b.initialiser(OnnxBuilder::ints("trips", {}, {2}));
  b.node("Add", {"last", "b"}, {"y"});
  auto& loop = b.node("Loop", {"trips", "", "a"}, {"last"});
  onnx::GraphProto& body = graph_of(loop, "body");
  for (const char* name : {"i", "go", "sum"}) body.add_input()->set_name(name);
  OnnxBuilder::fill(*body.add_node(), "Add", {"twice", "b"}, {"next"});  // b is made outside
  OnnxBuilder::fill(*body.add_node(), "Add", {"sum", "sum"}, {"twice"});
  OnnxBuilder::fill(*body.add_node(), "Identity", {"go"}, {"on"});
  for (const char* name : {"on", "next"}) body.add_output()->set_name(name);
  b.node("Neg", {"a"}, {"b"});
  b.node("Abs", {"x"}, {"a"});
  b.output("y");
  expect_near(results(b, {floats({2}, {1, -3})})[0], {0, 0});  // a -> 2a - a = a -> a; a + b
}

TEST(OnnxQuantised, NodesInACircleAreRefused) {
  OnnxBuilder b;
  b.input("x", {2});
  b.node("Add", {"x", "z"}, {"y"});
  b.node("Neg", {"y"}, {"z"});
  b.output("z");
  EXPECT_NE(refusal(b).find("no node gives the value"), std::string::npos) << refusal(b);
}

TEST(OnnxQuantised, PairsOfNamesAndNumbersAreTheNumbers) {
  OnnxBuilder b(13);
  b.import("ai.onnx.ml", 1);
  b.input("x", {1, 3});
  auto& node = b.node("ZipMap", {"x"}, {"pairs"}, "ai.onnx.ml");
  auto* names = node.add_attribute();
  names->set_name("classlabels_strings");
  names->set_type(onnx::AttributeProto::STRINGS);
  for (const char* name : {"red", "dark green", "blue"}) names->add_strings(name);
  b.output("pairs");
  expect_near(results(b, {floats({1, 3}, {1, 2, 3})})[0], {1, 2, 3});
  EXPECT_EQ(b.read().rt_info.at("model_info/labels"), "red dark_green blue");
}

// Halves of the width: 5 of 9 rows, 3.5 of 7 columns become 4; both are taken by the scale 5 / 9.
TEST(OnnxQuantised, ResizeKeepsTheScaleThatItRounds) {
  OnnxBuilder b(18);
  b.input("x", {1, 1, 9, 7});
  b.initialiser(OnnxBuilder::ints("sizes", {2}, {5, 6}));
  auto& node = b.node("Resize", {"x", "", "", "sizes"}, {"y"});
  set(node, "mode", std::string("linear"));
  set(node, "keep_aspect_ratio_policy", std::string("not_larger"));
  set(node, "axes", std::vector<int64_t>{2, 3});
  b.output("y");
  std::vector<float> x(63);
  for (size_t i = 0; i < 63; ++i) x[i] = static_cast<float>(i % 7);
  const Tensor y = results(b, {floats({1, 1, 9, 7}, x)})[0];
  EXPECT_EQ(y.shape(), (Shape{1, 1, 5, 4}));
  const std::vector<float> values = y.to_floats();
  for (size_t c = 0; c < 4; ++c) {
    const float at = (static_cast<float>(c) + 0.5f) * 9 / 5 - 0.5f;
    EXPECT_NEAR(values[c], std::clamp(at, 0.f, 6.f), 1e-5f) << c;
  }
}

// ---- what a few bytes of a file may ask for -----------------------------------------------------

// `depth` loops inside one another, each of which runs `trips` times.
OnnxBuilder nested_loops(int depth, int64_t trips) {
  OnnxBuilder b(16);
  b.input("x", {2});
  b.initialiser(OnnxBuilder::ints("trips", {}, {trips}));
  onnx::NodeProto* loop = &b.node("Loop", {"trips", "", "x"}, {"y"});
  b.output("y");
  for (int d = 1; d <= depth; ++d) {
    onnx::GraphProto& body = graph_of(*loop, "body");
    const std::string n = std::to_string(d), state = "s" + n, go = "c" + n;
    for (const std::string& name : {"i" + n, go, state}) body.add_input()->set_name(name);
    OnnxBuilder::fill(*body.add_node(), "Identity", {go}, {"k" + n});
    onnx::NodeProto& inner = *body.add_node();
    OnnxBuilder::fill(inner, d == depth ? "Add" : "Loop",
                      d == depth ? std::vector<std::string>{state, state}
                                 : std::vector<std::string>{"trips", go, state},
                      {"o" + n});
    for (const std::string& name : {"k" + n, "o" + n}) body.add_output()->set_name(name);
    loop = &inner;
  }
  return b;
}

TEST(OnnxLimits, LoopsBelowNoneRunNoIteration) {
  const std::vector<Tensor> x{floats({2}, {3, -4})};
  expect_near(results(nested_loops(1, -5), x)[0], {3, -4});
  expect_near(results(nested_loops(2, 2), x)[0], {48, -64});
}

TEST(OnnxLimits, NestedLoopsTakeBoundedWork) {
  const OnnxModel model = nested_loops(9, 10).read();
  run_passes(*model.graph, {}, "unroll_loops");
  EXPECT_LT(model.graph->nodes().size(), 50'000u);
}

// The work may be in proportion to what the file states.
TEST(OnnxLimits, ManyBranchesAreRead) {
  constexpr int kMany = 14'000;
  OnnxBuilder b(16);
  b.input("c", {}, onnx::TensorProto::BOOL);
  b.input("y0", {2});
  for (int i = 0; i < kMany; ++i) {
    const std::string last = "y" + std::to_string(i), n = std::to_string(i + 1);
    auto& node = b.node("If", {"c"}, {"y" + n});
    for (const auto& [name, type] : {std::pair{"then_branch", "Relu"}, {"else_branch", "Abs"}}) {
      auto& graph = graph_of(node, name);
      OnnxBuilder::fill(*graph.add_node(), type, {last}, {type + n});
      graph.add_output()->set_name(type + n);
    }
  }
  b.output("y" + std::to_string(kMany));
  EXPECT_GE(b.read().graph->nodes().size(), size_t{kMany});
}

// Loops that are not unrolled have loops in their bodies, each of which could be: one limit holds for all.
TEST(OnnxLimits, LoopsThatStayTakeBoundedWork) {
  for (const auto& [depth, trips] : {std::pair{7, 10}, {20, 2}, {4, 60}}) {
    const OnnxModel model = nested_loops(depth, trips).read();
    const std::clock_t begin = std::clock();
    run_passes(*model.graph, {});
    EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 30)
        << depth << " loops";  // without a limit minutes
  }
}

TEST(OnnxLimits, ChainsOfProductsAreLeftToTheDevice) {
  OnnxBuilder b(16);
  b.input("x", {512, 512});
  b.initialiser(OnnxBuilder::ints("shape", {2}, {512, 512}));
  b.node("ConstantOfShape", {"shape"}, {"m0"});
  for (int i = 0; i < 30; ++i)
    b.node("MatMul", {"m" + std::to_string(i), "m0"}, {"m" + std::to_string(i + 1)});
  b.node("Add", {"x", "m30"}, {"y"});
  b.output("y");
  const OnnxModel model = b.read();
  run_passes(*model.graph, {}, "fold_constants");
  EXPECT_GT(count_of(model, "MatMul"), 20u);
}

TEST(OnnxLimits, FunctionsThatGrowAreRefused) {
  OnnxBuilder b;
  b.import("own", 1);
  b.input("x", {2});
  for (int i = 0; i < 24; ++i) {
    auto& function = *b.model().add_functions();
    function.set_domain("own");
    function.set_name("f" + std::to_string(i));
    function.add_input("a");
    function.add_output("b");
    for (const auto& [domain, version] : {std::pair{"", 17}, {"own", 1}}) {
      auto* import = function.add_opset_import();
      import->set_domain(domain);
      import->set_version(version);
    }
    const std::string before = i == 0 ? "Relu" : "f" + std::to_string(i - 1);
    OnnxBuilder::fill(*function.add_node(), before, {"a"}, {"t"}, i == 0 ? "" : "own");
    OnnxBuilder::fill(*function.add_node(), before, {"t"}, {"b"}, i == 0 ? "" : "own");
  }
  b.node("f23", {"x"}, {"y"}, "own");
  b.output("y");
  EXPECT_NE(refusal(b).find("more than"), std::string::npos) << refusal(b);
}

TEST(OnnxLimits, ConstantIndicesOutOfRangeAreRefused) {
  const auto says = [](const char* type, const Shape& indices, const std::vector<int64_t>& values,
                       bool updates) {
    OnnxBuilder b;
    b.input("x", {2, 3});
    b.initialiser(OnnxBuilder::ints("i", indices, values));
    if (updates) b.initialiser(OnnxBuilder::floats("u", {1, 2}, {1, 2}));
    b.node(type,
           updates ? std::vector<std::string>{"x", "i", "u"} : std::vector<std::string>{"x", "i"},
           {"y"});
    b.output("y");
    return refusal(b);
  };
  for (const auto& text :
       {says("Gather", {2}, {0, 2}, false), says("Gather", {1}, {-3}, false),
        says("GatherElements", {1, 3}, {0, 1, 5}, false), says("GatherND", {1, 2}, {1, 3}, false),
        says("ScatterElements", {1, 2}, {0, 7}, true),
        says("ReverseSequence", {3}, {1, 2, 3}, false)})
    EXPECT_NE(text.find("out of range"), std::string::npos) << text;
  EXPECT_EQ(says("Gather", {2}, {-2, 1}, false), "nothing was refused");
}

// Indices that are computed cannot be refused on a device: what they read is 0, what they would
// write is left out.
TEST(OnnxLimits, ComputedIndicesOutOfRangeReadZerosAndWriteNothing) {
  OnnxBuilder b;
  b.input("x", {1, 3});
  b.input("i", {1, 3}, T::INT64);
  b.node("GatherElements", {"x", "i"}, {"read"});
  set(*b.graph().mutable_node(0), "axis", 1);
  b.initialiser(OnnxBuilder::floats("u", {1, 3}, {7, 8, 9}));
  b.node("ScatterElements", {"x", "i", "u"}, {"written"});
  set(*b.graph().mutable_node(1), "axis", 1);
  b.output("read");
  b.output("written");
  const auto got =
      results(b, {floats({1, 3}, {1, 2, 3}),
                  Tensor::of(ElementType::i64, {1, 3}, std::vector<int64_t>{1, 3, -4})});
  expect_near(got[0], {2, 0, 0});
  expect_near(got[1], {1, 7, 3});
}

}  // namespace
}  // namespace clinfer
