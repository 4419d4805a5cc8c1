// Convolutions and products of bytes that become bytes again: each is the rounded product of an
// exact sum and one factor, to the bit, on any tier. Half of the factors here put sums halfway
// between two steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "tests/engine/onnx/onnx_builder.h"

namespace clinfer {
namespace {

using T = onnx::TensorProto;

constexpr int64_t kIn = 16, kOut = 24, kSide = 7;
constexpr int kXZero = 120, kYZero = 131, kZZero = 7;
constexpr float kXScale = 0.1f, kWScale = 0.05f, kVScale = 0.02f;

// The scales of the outputs: factors of 1/16, and of about 1/16 times a channel's number.
float w_scale(int64_t channel) { return kWScale * static_cast<float>(channel % 3 + 1); }
float y_scale() { return kXScale * kWScale * 16; }
float z_scale() { return y_scale() * kVScale * 4; }

int pattern(int64_t i, int by) { return static_cast<int>(i * by % 251); }
int x_at(int64_t i) { return pattern(i, 37); }
int w_at(int64_t i) { return pattern(i, 73) % 15 - 7; }
int v_at(int64_t i) { return pattern(i, 19) % 7 - 3; }
int bias_at(int64_t channel) { return pattern(channel, 91) * 8 - 1000; }

T bytes(const std::string& name, const Shape& shape, int count, int (*value)(int64_t), int type) {
  T tensor = OnnxBuilder::of(name, shape, type);
  for (int i = 0; i < count; ++i) tensor.add_int32_data(value(i));
  return tensor;
}
T byte(const std::string& name, int value, int type = T::UINT8) {
  T tensor = OnnxBuilder::of(name, {}, type);
  tensor.add_int32_data(value);
  return tensor;
}

// A convolution of 1x1 and a depthwise one of 3x3, as QLinearConv or between DequantizeLinear and
// QuantizeLinear.
OnnxBuilder network(bool in_pairs) {
  OnnxBuilder b(13);
  b.input("x", {1, kIn, kSide, kSide}, T::UINT8);
  std::vector<float> w_scales, bias_scales;
  for (int64_t c = 0; c < kOut; ++c) {
    w_scales.push_back(w_scale(c));
    bias_scales.push_back(kXScale * w_scale(c));
  }
  for (const auto& [name, scale] :
       {std::pair{"xs", kXScale}, {"ys", y_scale()}, {"vs", kVScale}, {"zs", z_scale()}})
    b.initialiser(OnnxBuilder::floats(name, {}, {scale}));
  b.initialiser(OnnxBuilder::floats("ws", {kOut}, w_scales));
  b.initialiser(OnnxBuilder::floats("bs", {kOut}, bias_scales));
  b.initialiser(byte("xz", kXZero));
  b.initialiser(byte("yz", kYZero));
  b.initialiser(byte("zz", kZZero));
  b.initialiser(byte("vz", 0, T::INT8));
  b.initialiser(bytes(
      "wz", {kOut}, kOut, [](int64_t) { return 0; }, T::INT8));
  b.initialiser(bytes(
      "bz", {kOut}, kOut, [](int64_t) { return 0; }, T::INT32));
  b.initialiser(bytes("w", {kOut, kIn, 1, 1}, kOut * kIn, w_at, T::INT8));
  b.initialiser(bytes("v", {kOut, 1, 3, 3}, kOut * 9, v_at, T::INT8));
  b.initialiser(bytes("bias", {kOut}, kOut, bias_at, T::INT32));
  onnx::NodeProto* second = nullptr;
  if (in_pairs) {
    b.node("DequantizeLinear", {"x", "xs", "xz"}, {"xf"});
    for (const auto& [name, scale] : {std::pair{"w", "ws"}, {"v", "vs"}, {"bias", "bs"}}) {
      const std::string n = name, zero = n == "bias" ? "bz" : n + "z";
      auto& node = b.node("DequantizeLinear", {n, scale, zero}, {n + "f"});
      if (n != "v") set(node, "axis", 0);
    }
    b.node("Conv", {"xf", "wf", "biasf"}, {"yf"});
    b.node("QuantizeLinear", {"yf", "ys", "yz"}, {"y"});
    b.node("DequantizeLinear", {"y", "ys", "yz"}, {"yd"});
    second = &b.node("Conv", {"yd", "vf"}, {"zf"});
    set(*second, "group", kOut);
    set(*second, "pads", std::vector<int64_t>{1, 1, 1, 1});
    b.node("QuantizeLinear", {"zf", "zs", "zz"}, {"z"});
  } else {
    b.node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"}, {"y"});
    second = &b.node("QLinearConv", {"y", "ys", "yz", "v", "vs", "vz", "zs", "zz"}, {"z"});
    set(*second, "group", kOut);
    set(*second, "pads", std::vector<int64_t>{1, 1, 1, 1});
  }
  b.output("z");
  return b;
}

int requantised(int64_t sum, float factor, int zero) {
  return std::clamp(static_cast<int>(std::nearbyint(static_cast<float>(sum) * factor)) + zero, 0,
                    255);
}

std::vector<float> wanted() {
  constexpr int64_t kPixels = kSide * kSide;
  std::vector<int> y;
  for (int64_t c = 0; c < kOut; ++c)
    for (int64_t p = 0; p < kPixels; ++p) {
      int64_t sum = bias_at(c);
      for (int64_t i = 0; i < kIn; ++i)
        sum += int64_t{x_at(i * kPixels + p) - kXZero} * w_at(c * kIn + i);
      y.push_back(requantised(sum, kXScale * w_scale(c) / y_scale(), kYZero));
    }
  std::vector<float> z;
  for (int64_t c = 0; c < kOut; ++c)
    for (int64_t row = 0; row < kSide; ++row)
      for (int64_t column = 0; column < kSide; ++column) {
        int64_t sum = 0;
        for (int64_t k = 0; k < 9; ++k) {
          const int64_t r = row + k / 3 - 1, q = column + k % 3 - 1;
          if (r < 0 || q < 0 || r >= kSide || q >= kSide) continue;
          sum += int64_t{y[static_cast<size_t>((c * kSide + r) * kSide + q)] - kYZero} *
                 v_at(c * 9 + k);
        }
        z.push_back(static_cast<float>(requantised(sum, y_scale() * kVScale / z_scale(), kZZero)));
      }
  return z;
}

class OnnxRequantised : public testing::TestWithParam<bool> {};

TEST_P(OnnxRequantised, SumsAreRoundedOnceOnEachTier) {
  const std::string file = network(GetParam()).model().SerializeAsString();
  const auto model =
      Model::read_bytes(std::as_bytes(std::span(file)), {}, "requantised.onnx", {}, {});
  Tensor x = Tensor::allocate(ElementType::u8, {1, kIn, kSide, kSide});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(x_at(i));
  Config config, in_floats;
  config.cache_dir = in_floats.cache_dir = "";
  in_floats.quantized_in_integers = false;
  const std::pair<const char*, std::shared_ptr<CompiledModel>> compiled[] = {
      {"in integers", CompiledModel::compile(model, config)},
      {"in floats", CompiledModel::compile(model, in_floats)},
      {"on the host", CompiledModel::compile_first_tier(model, config)}};
  const std::vector<float> right = wanted();
  // The network tells rounding apart: not all values are at the ends of their range.
  EXPECT_GT(std::count_if(right.begin(), right.end(), [](float v) { return v > 0 && v < 255; }),
            static_cast<ptrdiff_t>(right.size() / 2));
  for (const auto& [name, on] : compiled) {
    const auto request = on->create_request();
    request->set_input(0, x);
    request->start();
    request->wait();
    EXPECT_EQ(request->output(0).to_floats(), right) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, OnnxRequantised, testing::Bool(),
                         [](const auto& info) { return info.param ? "Pairs" : "Operators"; });

}  // namespace
}  // namespace clinfer
