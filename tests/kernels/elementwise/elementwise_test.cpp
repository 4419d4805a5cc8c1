// Element functions: values of the specifications, broadcasting, integers, tails, and the kernel
// against the reference.
#include <climits>
#include <cmath>
#include <tuple>

#include "kernels/base/float8.h"
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer {
namespace {

using test::attributes;
using test::check_op;
using test::make_desc;
using test::random_ints;
using test::random_tensor;
using test::reference;
using test::says;

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::of(ElementType::f32, std::move(shape), values);
}
Tensor ints(Shape shape, const std::vector<int32_t>& values) {
  return Tensor::of(ElementType::i32, std::move(shape), values);
}

std::vector<float> evaluated(const std::string& type, int opset, const Attributes& attrs,
                             const std::vector<Tensor>& inputs) {
  const OpDesc desc = make_desc(type, opset, attrs, inputs, std::vector<bool>(inputs.size(), true));
  return reference(desc, inputs)[0].to_floats();
}

void expect(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5 * std::max(1.f, std::fabs(want[i]))) << i;
}

TEST(Elementwise, HandValues) {
  const Tensor x = floats({4}, {-2, -0.5f, 0, 3});
  expect(evaluated("ReLU", 1, {}, {x}), {0, 0, 0, 3});
  expect(evaluated("Clamp", 1, attributes({{"min", "-1"}, {"max", "2"}}), {x}), {-1, -0.5f, 0, 2});
  expect(evaluated("Elu", 1, attributes({{"alpha", "2"}}), {x}), {-1.7293294f, -0.7869387f, 0, 3});
  expect(evaluated("HSwish", 4, {}, {x}), {-0.33333334f, -0.20833334f, 0, 3});
  expect(evaluated("HSigmoid", 5, {}, {x}), {0.16666667f, 0.41666666f, 0.5f, 1});
  expect(evaluated("HardSigmoid", 1, {}, {x, floats({}, {0.2f}), floats({}, {0.5f})}),
         {0.1f, 0.4f, 0.5f, 1});
  expect(evaluated("Selu", 1, {}, {x, floats({1}, {1.6732632f}), floats({1}, {1.050701f})}),
         {-1.5201665f, -0.6917582f, 0, 3.152103f});
  expect(evaluated("Mish", 4, {}, {x}), {-0.25250152f, -0.22074346f, 0, 2.9865351f});
  expect(evaluated("SoftPlus", 4, {}, {x}), {0.126928f, 0.474077f, 0.6931472f, 3.0485873f});
  expect(evaluated("Swish", 4, {}, {x, floats({}, {2})}),
         {-0.03597242f, -0.13447072f, 0, 2.9925818f});
  expect(evaluated("Gelu", 7, attributes({{"approximation_mode", "TANH"}}), {x}),
         {-0.04540229f, -0.15428599f, 0, 2.9963627f});
  expect(evaluated("Gelu", 2, {}, {x}), {-0.04550028f, -0.15426877f, 0, 2.9959502f});
  const Tensor halves = floats({6}, {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  expect(evaluated("Round", 5, attributes({{"mode", "half_to_even"}}), {halves}),
         {-2, -2, 0, 0, 2, 2});
  expect(evaluated("Round", 5, attributes({{"mode", "half_away_from_zero"}}), {halves}),
         {-3, -2, -1, 1, 2, 3});
  expect(evaluated("FloorMod", 1, {}, {floats({2}, {-7, 7}), floats({}, {3})}), {2, 1});
  expect(evaluated("Mod", 1, {}, {floats({2}, {-7, 7}), floats({}, {3})}), {-1, 1});
  expect(evaluated("Power", 1, {}, {floats({3}, {-2, 3, 0.5f}), floats({}, {2})}), {4, 9, 0.25f});
}

TEST(Elementwise, Integers) {
  const Tensor x = ints({6}, {-7, 7, -7, 7, 6, -6}), y = ints({6}, {2, 2, -2, -2, 0, 3});
  expect(evaluated("Divide", 1, {}, {x, y}), {-4, 3, 3, -4, 0, -2});
  expect(evaluated("Divide", 1, attributes({{"m_pythondiv", "false"}}), {x, y}),
         {-3, 3, 3, -3, 0, -2});
  expect(evaluated("Mod", 1, {}, {x, ints({6}, {2, 2, -2, -2, 5, 4})}), {-1, 1, -1, 1, 1, -2});
  expect(evaluated("FloorMod", 1, {}, {x, ints({6}, {2, 2, -2, -2, 5, 4})}), {1, 1, -1, -1, 1, 2});
  // Above the largest integer that a float holds exactly.
  expect(evaluated("Power", 1, {}, {ints({3}, {-3, 2, 2}), ints({3}, {3, 0, -1})}), {-27, 1, 0});
  expect(evaluated("Clamp", 1, attributes({{"min", "-1.5"}, {"max", "2.5"}}), {x}),
         {-1, 2, -1, 2, 2, -1});
  const Tensor big = ints({2}, {16777217, -16777217});
  const OpDesc desc = make_desc("Add", 1, {}, {big, ints({}, {0})}, {});
  EXPECT_EQ(reference(desc, {big, ints({}, {0})})[0].to_ints(),
            (std::vector<int64_t>{16777217, -16777217}));
  for (const char* type : {"Multiply", "Divide", "FloorMod", "Power"}) {
    const Tensor a = random_ints(ElementType::i32, {3, 5, 7}, -40, 40),
                 b = random_ints(ElementType::i32, {5, 1}, 0, 4, 2);
    check_op(make_desc(type, 1, {}, {a, b}, {}), {a, b}, {0, 0});
  }
  const Tensor a = random_ints(ElementType::i32, {4, 9}, 0, 5);
  for (const char* type : {"Abs", "Sqrt"}) check_op(make_desc(type, 1, {}, {a}, {}), {a}, {0, 0});
  // Integer results of float functions are rounded and saturated to the type's range.
  EXPECT_EQ(reference(make_desc("Sqrt", 1, {}, {ints({5}, {0, 3, 6, 7, -1})}, {}),
                      {ints({5}, {0, 3, 6, 7, -1})})[0]
                .to_ints(),
            (std::vector<int64_t>{0, 2, 2, 3, 0}));
  for (const ElementType type : {ElementType::u8, ElementType::i8}) {
    const Tensor bytes = random_ints(type, {4, 9}, type == ElementType::u8 ? 0 : -9, 9, 3);
    for (const char* function : {"Sinh", "Exp", "Cos"})
      check_op(make_desc(function, 1, {}, {bytes}, {}), {bytes}, {0, 0});
  }
  check_op(make_desc("Clamp", 1, attributes({{"min", "-1.5"}, {"max", "2.5"}}), {a}, {}), {a},
           {0, 0});
  // Bounds outside the type's range become the type's own.
  for (const auto& [type, lowest, highest] : {std::tuple{ElementType::u8, 0, 255},
                                              {ElementType::i8, -128, 127},
                                              {ElementType::i32, INT_MIN, INT_MAX}}) {
    const Tensor x = random_ints(type, {4, 9}, 0, 5);
    for (const auto& [min, max, want] : {std::tuple{"1e30", "2e30", highest},
                                         {"-2e30", "-1e30", lowest},
                                         {"3e9", "4e9", highest}}) {
      const OpDesc desc = make_desc("Clamp", 1, attributes({{"min", min}, {"max", max}}), {x}, {});
      EXPECT_EQ(reference(desc, {x})[0].to_ints(), std::vector<int64_t>(36, want)) << min;
      check_op(desc, {x}, {0, 0});
    }
  }
}

TEST(Elementwise, Bits) {
  using test::error_of;
  using test::ints;
  using test::run;
  const auto apply = [](const char* type, const std::vector<Tensor>& inputs) {
    return run(type, 15, {}, inputs, 1, inputs.size())[0].to_ints();
  };
  using Ints = std::vector<int64_t>;
  const Tensor x = ints({12, -7, 5}), y = ints({10, 3, 1});
  EXPECT_EQ(apply("BitwiseAnd", {x, y}), (Ints{8, 1, 1}));
  EXPECT_EQ(apply("BitwiseOr", {x, y}), (Ints{14, -5, 5}));
  EXPECT_EQ(apply("BitwiseXor", {x, y}), (Ints{6, -6, 4}));
  EXPECT_EQ(apply("BitwiseNot", {x}), (Ints{-13, 6, -6}));
  EXPECT_EQ(apply("BitwiseLeftShift", {x, ints({2, 1, 64})}), (Ints{48, -14, 0}));
  EXPECT_EQ(apply("BitwiseRightShift", {x, ints({2, 1, -1})}), (Ints{3, -4, 0}));
  const Tensor flags = Tensor::of(ElementType::boolean, {2}, Ints{0, 1});
  EXPECT_EQ(apply("BitwiseNot", {flags}), (Ints{1, 0}));
  EXPECT_EQ(Tensor::of(ElementType::u8, {1},
                       apply("BitwiseNot", {Tensor::of(ElementType::u8, {1}, Ints{250})}))
                .to_ints(),
            (Ints{5}));
  EXPECT_TRUE(
      says(error_of("BitwiseNot", 13, {}, {random_tensor({2})}), "takes integers, not f32"));
  const std::vector<Tensor> numbers{random_ints(ElementType::i32, {3, 40}, -99, 99),
                                    random_ints(ElementType::i32, {40}, 0, 31, 2)};
  for (const char* type : {"BitwiseXor", "BitwiseRightShift"})
    check_op(make_desc(type, 15, {}, numbers, {false, false}), numbers);
}

TEST(Elementwise, FakeQuantize) {
  const auto range = [](float v) { return floats({}, {v}); };
  const std::vector<Tensor> inputs{floats({5}, {-1, 0.1f, 0.5f, 0.74f, 9}), range(0), range(1),
                                   range(10), range(20)};
  expect(evaluated("FakeQuantize", 1, attributes({{"levels", "5"}}), inputs),
         {10, 10, 15, 17.5f, 20});
  // A step function, if the limits are equal.
  const std::vector<Tensor> step{floats({3}, {-1, 0, 1}), range(0), range(0), range(-1), range(1)};
  expect(evaluated("FakeQuantize", 1, attributes({{"levels", "2"}}), step), {-1, -1, 1});
  const Tensor x = random_tensor({1, 24, 5, 3}, -3, 3);
  const std::vector<Tensor> wide{x, random_tensor({1, 24, 1, 1}, -2, -1),
                                 random_tensor({1, 24, 1, 1}, 1, 2), range(-1), range(2)};
  check_op(make_desc("FakeQuantize", 1, attributes({{"levels", "256"}}), wide,
                     {false, true, true, true, true}),
           wide);
}

// The steps that replace an operation in another one's tail give the operation's results.
TEST(Elementwise, AsTail) {
  const Tensor x = random_tensor({1, 6, 4, 4}, -3, 3);
  const auto check_elementwise = [&](const std::string& type, const Attributes& attrs,
                                     std::vector<Tensor> more, double tolerance) {
    std::vector<Tensor> inputs{x};
    inputs.insert(inputs.end(), more.begin(), more.end());
    std::vector<bool> constant(inputs.size(), true);
    constant[0] = false;
    const OpDesc desc = make_desc(type, find_op(type, 1) ? 1 : 4, attrs, inputs, constant);
    const TailSteps tail = find_op(desc.type, desc.opset)->as_tail(desc, 0);
    ASSERT_FALSE(tail.steps.empty()) << type;
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), tail.constants.begin(), tail.constants.end());
    const std::vector<float> want = reference(desc, inputs)[0].to_floats();
    OpDesc carrier = make_desc("Negative", 1, {}, {x}, {});
    carrier.inputs.clear();
    carrier.constants.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      carrier.inputs.push_back(i ? TensorDesc::row_major(ElementType::f32, all[i].shape())
                                 : TensorDesc::channels_last(ElementType::f32, x.shape()));
      carrier.constants.push_back(i ? all[i] : Tensor());
    }
    carrier.tail = tail.steps;
    all[0] = reference(make_desc("Negative", 1, {}, {x}, {}), {x})[0];
    const std::vector<float> got = reference(carrier, all)[0].to_floats();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << type;
    check_op(carrier, all);
  };
  check_elementwise("PReLU", {}, {random_tensor({6}, -1, 1, 3)}, 1e-5);
  check_elementwise("Multiply", attributes({{"auto_broadcast", "pdpd"}, {"axis", "1"}}),
                    {random_tensor({6, 1}, -1, 1, 3)}, 1e-5);
  check_elementwise("Add", {}, {random_tensor({1, 6, 1, 1}, -1, 1, 3)}, 1e-5);
  check_elementwise("Swish", {}, {}, 1e-5);
  check_elementwise("FakeQuantize", attributes({{"levels", "16"}}),
                    {random_tensor({1, 6, 1, 1}, -2, -1), random_tensor({1, 6, 1, 1}, 1, 2),
                     random_tensor({1, 6, 1, 1}, -2, -1), random_tensor({1, 6, 1, 1}, 1, 2)},
                    1e-4);
  check_elementwise("FakeQuantize",
                    attributes({{"levels", "16"}, {"auto_broadcast", "pdpd"}, {"axis", "1"}}),
                    {random_tensor({6}, -2, -1), random_tensor({6}, 1, 2),
                     random_tensor({}, -1, -1), random_tensor({6}, 1, 2, 3)},
                    1e-4);
}

TEST(Elementwise, Broadcasting) {
  const Tensor x = random_tensor({2, 19, 3, 5}, 0.5f, 2, 1),
               same = random_tensor({2, 19, 3, 5}, 0.5f, 2, 2);
  const auto both = [&](const char* type, const Attributes& attrs, const Tensor& a, const Tensor& b,
                        bool constant) {
    check_op(make_desc(type, 1, attrs, {a, b}, {false, constant}), {a, b});
  };
  both("Add", {}, x, same, false);
  both("Multiply", {}, x, random_tensor({1, 19, 1, 1}, 1, 2, 3), true);
  both("Subtract", {}, random_tensor({1, 1, 3, 5}), x, false);
  both("Divide", {}, x, floats({}, {3}), true);
  both("Add", {}, x, random_tensor({3, 1}), false);
  both("Power", {}, random_tensor({2, 1, 3, 1}, 1, 2), random_tensor({1, 5, 1, 4}), false);
  both("Maximum",
       attributes({{"auto_broadcast", "pdpd"}, {"auto_broadcast.auto_broadcast_axis", "1"}}), x,
       random_tensor({19, 1}), true);
  both("PReLU", {}, random_tensor({2, 19, 3, 5}), random_tensor({19}), true);
  both("PReLU", {}, random_tensor({2, 19, 7}), random_tensor({19}), true);
  both("Minimum", {}, random_tensor({2, 1, 3, 1, 2, 1, 2, 3}),
       random_tensor({2, 3, 1, 2, 1, 2, 1, 3}), false);
  both("Add", {}, floats({}, {1}), floats({}, {2}), false);
  EXPECT_THROW(make_desc("Add", 1, {}, {x, random_tensor({7})}, {}), Error);
  EXPECT_THROW(
      make_desc("Add", 1, attributes({{"auto_broadcast", "none"}}), {x, random_tensor({5})}, {}),
      Error);
  EXPECT_THROW(make_desc("Add", 1, attributes({{"auto_broadcast", "pdpd"}, {"axis", "9"}}),
                         {x, random_tensor({5})}, {}),
               Error);
}

TEST(Elementwise, LayoutsAndTypes) {
  const Tensor x = random_tensor({1, 24, 5, 7}), y = random_tensor({1, 24, 5, 7}, -1, 1, 2);
  OpDesc desc = make_desc("Add", 1, {}, {x, y}, {});
  desc.inputs[0] = test::with_gaps(desc.inputs[0]);
  desc.outputs[0] = test::with_gaps(desc.outputs[0], 9, 1);
  check_op(desc, {x, y});
  desc.inputs[1] = TensorDesc::row_major(ElementType::f32, y.shape());
  check_op(desc, {x, y});  // not in vectors
  desc = make_desc("Swish", 4, {}, {x}, {});
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, {x}, {1e-3, 1e-3});
  // Scores that are sorted later stay f32, whatever type the operation reads.
  desc = make_desc("Multiply", 1, {}, {x, y}, {});
  for (const auto& [first, second, out] :
       {std::tuple{ElementType::f16, ElementType::f16, ElementType::f32},
        std::tuple{ElementType::f16, ElementType::f32, ElementType::f32},
        std::tuple{ElementType::f32, ElementType::f32, ElementType::f16}}) {
    desc.inputs[0].type = first, desc.inputs[1].type = second, desc.outputs[0].type = out;
    check_op(desc, {x, y}, {1e-3, 1e-3});
  }
}

TEST(Elementwise, ConvertsComparesSelects) {
  const Tensor x = random_tensor({2, 9}, -300, 300),
               i = random_ints(ElementType::i32, {2, 9}, -300, 300);
  for (const char* to : {"i32", "u8", "boolean", "f32"}) {
    check_op(make_desc("Convert", 1, attributes({{"destination_type", to}}), {i}, {}), {i}, {0, 0});
    check_op(make_desc("Convert", 1, attributes({{"destination_type", to}}), {x}, {}), {x}, {0, 0});
  }
  const Tensor close = i.convert(ElementType::f32);
  for (const char* type : {"Equal", "Less"}) {
    check_op(make_desc(type, 1, {}, {close, floats({2, 1}, {5, -4})}, {}),
             {close, floats({2, 1}, {5, -4})}, {0, 0});
    check_op(make_desc(type, 1, {}, {i, ints({9}, std::vector<int32_t>(9, 3))}, {}),
             {i, ints({9}, std::vector<int32_t>(9, 3))}, {0, 0});
  }
  const Tensor yes = random_ints(ElementType::boolean, {3, 1}, 0, 1),
               no = random_ints(ElementType::boolean, {3, 4}, 0, 1, 5);
  for (const char* type : {"LogicalXor"})
    check_op(make_desc(type, 1, {}, {yes, no}, {}), {yes, no}, {0, 0});
  check_op(make_desc("LogicalNot", 1, {}, {no}, {}), {no}, {0, 0});
  const Tensor a = random_tensor({2, 3, 4}), b = random_tensor({4}, -1, 1, 7);
  check_op(make_desc("Select", 1, {}, {yes, a, b}, {}), {yes, a, b}, {0, 0});
  expect(
      evaluated("Select", 1, {},
                {random_ints(ElementType::boolean, {1}, 1, 1), floats({1}, {4}), floats({1}, {5})}),
      {4});
}

// The functions of the table on the device, many in one kernel, at values where each of them is
// smooth.
// The values of each format, and the halves between them, in both directions.
TEST(ToFloat8, RoundsToTheNearestValue) {
  for (const Float8Format* format : {&kFloat8E4M3, &kFloat8E5M2}) {
    const Attributes type = attributes({{"type", std::string(format->name).c_str()}});
    std::vector<float> values;  // from 0 on
    for (int bits = 0; float8_value(static_cast<uint8_t>(bits), *format) <= format->most; ++bits)
      values.push_back(float8_value(static_cast<uint8_t>(bits), *format));
    EXPECT_EQ(values.back(), format->most);
    EXPECT_EQ(values[1], std::ldexp(1.f, format->least));
    std::vector<float> x, wanted;
    const auto add = [&](float from, float to) {
      x.insert(x.end(), {from, -from});
      wanted.insert(wanted.end(), {to, -to});
    };
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      const float half = (values[i] + values[i + 1]) / 2;
      add(values[i], values[i]);
      add(half, values[i + i % 2]);
      add(std::nextafter(half, 0.f), values[i]);
      add(std::nextafter(half, format->most), values[i + 1]);
    }
    const Tensor in = floats({static_cast<int64_t>(x.size())}, x);
    EXPECT_EQ(evaluated("ToFloat8", 1, type, {in}), wanted);
    check_op(make_desc("ToFloat8", 1, type, {in}, {false}), {in}, {0, 0});
  }
}

TEST(ToFloat8, LargeNumbersAndNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = floats({7}, {464, 465, -1e9f, kInfinity, 61439, 61440, std::nanf("")});
  const auto rounded = [&](const char* type, const char* saturate) {
    const Attributes of = attributes({{"type", type}, {"saturate", saturate}});
    check_op(make_desc("ToFloat8", 1, of, {x}, {false}), {x}, {0, 0});
    return evaluated("ToFloat8", 1, of, {x});
  };
  const auto same = [](std::vector<float> got, const std::vector<float>& wanted) {
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(std::isnan(wanted[i]) ? std::isnan(got[i]) : got[i] == wanted[i]) << i;
  };
  const float none = std::nanf("");
  same(rounded("f8e4m3", "true"), {448, 448, -448, 448, 448, 448, none});
  same(rounded("f8e4m3", "false"), {448, none, none, none, none, none, none});
  same(rounded("f8e5m2", "true"), {448, 448, -57344, 57344, 57344, 57344, none});
  same(rounded("f8e5m2", "false"), {448, 448, -kInfinity, kInfinity, 57344, kInfinity, none});
  EXPECT_THROW(rounded("f8e3m4", "true"), Error);
}

// All numbers and the halves between them are stored as the format says, and read again.
TEST(ToFloat8, IsStoredInBytes) {
  std::vector<float> x;
  for (int bits = 0; bits < 0x7f; ++bits) {
    const float value = float8_value(static_cast<uint8_t>(bits), kFloat8E4M3),
                next = float8_value(static_cast<uint8_t>(bits + 1), kFloat8E4M3);
    const float half = bits == 0x7e ? 1e9f : (value + next) / 2;
    for (const float v : {value, half, std::nextafter(half, 0.f), std::nextafter(half, 449.f)})
      x.insert(x.end(), {v, -v});
  }
  const auto count = static_cast<int64_t>(x.size());
  const Attributes type = attributes({{"type", "f8e4m3"}});
  for (const int64_t columns : {int64_t{1}, count}) {  // one by one and in vectors
    const Shape shape{count / columns, columns};
    const std::vector<Tensor> in{floats(shape, x), floats({}, {1}), floats({}, {0})};
    const OpDesc store = make_desc("Quantize", 1, type, in, {false, true, true});
    ASSERT_EQ(store.outputs[0].type, ElementType::f8e4m3);
    const Tensor stored = reference(store, in)[0];
    EXPECT_EQ(
        stored.to_floats(),
        evaluated("ToFloat8", 1, attributes({{"type", "f8e4m3"}, {"saturate", "true"}}), {in[0]}));
    check_op(store, in, {0, 0});
    const std::vector<Tensor> back{stored, floats({}, {0.5f}), floats({}, {3})};
    const OpDesc load = make_desc("Dequantize", 1, {}, back, {false, true, true});
    ASSERT_EQ(load.outputs[0].type, ElementType::f32);
    check_op(load, back, {0, 0});
  }
  EXPECT_EQ(float8_bits(std::nanf(""), kFloat8E4M3), 0x7f);
  EXPECT_EQ(float8_bits(-0.f, kFloat8E4M3), 0x80);
}

TEST(Elementwise, Functions) {
  const std::vector<std::vector<PostOp>> chains{{{"soft_sign"},
                                                 {"asin"},
                                                 {"sin"},
                                                 {"tan"},
                                                 {"atan"},
                                                 {"tanh"},
                                                 {"atanh"},
                                                 {"sinh"},
                                                 {"asinh"},
                                                 {"erf"}},
                                                {{"soft_sign"},
                                                 {"acos"},
                                                 {"cos"},
                                                 {"cosh"},
                                                 {"linear", 1, 0.1f},
                                                 {"acosh"},
                                                 {"sqrt"},
                                                 {"exp"},
                                                 {"log"},
                                                 {"sigmoid"},
                                                 {"mish"},
                                                 {"swish", 2},
                                                 {"gelu_erf"},
                                                 {"gelu_tanh"},
                                                 {"soft_plus"}},
                                                {{"hswish"},
                                                 {"elu", 0.5f},
                                                 {"selu", 1.6f, 1.1f},
                                                 {"hsigmoid"},
                                                 {"hard_sigmoid", 0.2f, 0.5f},
                                                 {"clamp", 0.6f, 0.65f},
                                                 {"square"}},
                                                {{"linear", 1.7f, 0},
                                                 {"ceiling"},
                                                 {"linear", 0.3f, 0.11f},
                                                 {"floor"},
                                                 {"linear", 0.5f, 0},
                                                 {"round_even"},
                                                 {"linear", 1.5f, 0},
                                                 {"round_away"},
                                                 {"abs"},
                                                 {"negative"},
                                                 {"linear", 1, 2},
                                                 {"sign"}}};
  const Tensor x = random_tensor({1, 20, 3, 3}, -3, 3);
  for (const auto& chain : chains) {
    OpDesc desc = make_desc("Negative", 1, {}, {x}, {});
    desc.tail = chain;
    check_op(desc, {x}, {1e-5, 1e-4});
  }
  for (const PostOp& step : {PostOp{"elu", 2}, PostOp{"selu", 1.6f, 1.1f}}) {
    OpDesc desc = make_desc("Negative", 1, {}, {x}, {});
    desc.tail = {step};
    for (const float size : {1e-6f, 1e-3f, 0.5f, 100.f}) {
      const Tensor near = random_tensor({1, 20, 3, 3}, -size, size);
      check_op(desc, {near}, {0, 3e-6});
    }
  }
  for (const char* name : {"erf", "tanh"}) {
    OpDesc desc = make_desc("Negative", 1, {}, {x}, {});
    desc.tail = {PostOp{name}};
    for (const float size : {1e-6f, 1e-3f, 0.5f, 4.f, 100.f}) {
      const Tensor near = random_tensor({1, 20, 3, 3}, -size, size);
      check_op(desc, {near}, {0, 1e-6});
    }
  }
  const Tensor a = random_tensor({1, 20, 3, 3}, 1, 3, 4);
  OpDesc desc = make_desc("Subtract", 1, {}, {x, a}, {});
  desc.inputs.resize(9, desc.inputs[1]);
  desc.constants.resize(9);
  desc.tail = {{"power", 0, 0, 2, true},     {"mod", 0, 0, 3},
               {"floor_mod", 0, 0, 4, true}, {"squared_difference", 0, 0, 5},
               {"divide", 0, 0, 6, true},    {"minimum", 0, 0, 7},
               {"swish_by", 0, 0, 8}};
  check_op(desc, {x, a, a, a, a, a, a, a, a});
}

}  // namespace
}  // namespace clinfer

namespace clinfer::test {
namespace {

// In pictures of three channels, several pixels are computed at a time if their layout allows it.
TEST(Elementwise, FewChannels) {
  const Tensor scale = random_tensor({1, 3, 1, 1}, 0.5, 2, 2),
               shift = random_tensor({3, 1, 1}, -1, 1, 3);
  for (const Shape& shape : {Shape{1, 3, 6, 8}, Shape{2, 3, 5, 7}}) {
    const Tensor x = random_tensor(shape);
    OpDesc desc = make_desc("Multiply", 1, {}, {x, scale}, {false, true});
    desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, shift.shape()));
    desc.constants.push_back(shift);
    desc.tail = {{"add", 0, 0, 2, false}};
    check_op(desc, {x, scale, shift});
    desc.outputs[0] = with_gaps(desc.outputs[0]);
    check_op(desc, {x, scale, shift});
  }
}

// Vectors of a GPU are read and written at once where all of them are aligned.
TEST(Elementwise, AlignedVectorsOfGpus) {
  DeviceTraits gpu = gpu_traits();
  gpu.compute_units = 1;
  const Tensor x = random_tensor({2, 16, 20, 30}), y = random_tensor({1, 16, 1, 1}, 0.5, 2, 2);
  for (const ElementType type : {ElementType::f32, ElementType::f16})
    for (const bool gaps : {false, true}) {
      OpDesc desc = make_desc("Multiply", 1, {}, {x, y}, {false, true});
      for (TensorDesc* tensor : {&desc.inputs[0], &desc.outputs[0]}) {
        *tensor = TensorDesc::channels_last(type, x.shape());
        if (gaps) *tensor = with_gaps(*tensor);
      }
      const KernelFamily& family = *find_op("Multiply", 1)->families.at(0);
      const TuningPoint point = family.heuristic(desc, gpu);
      EXPECT_EQ(point["RUN"], gaps ? 4 : 16);
      const KernelPlan plan = family.plan(desc, gpu, point);
      for (const auto& [name, value] : plan.launches[0].defines)
        if (name == "LOAD") {
          EXPECT_EQ(value, gaps ? "LOADV" : "LOADV_ALIGNED");
        }
      check_op(desc, {x, y}, {1e-5, type == ElementType::f16 ? 1e-3 : 1e-4}, &gpu);
    }
}

}  // namespace
}  // namespace clinfer::test
