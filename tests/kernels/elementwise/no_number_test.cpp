// NaN, infinities, -0 and the smallest numbers through each function: on the device as by the plain
// C++. A confidence that is no number must not become one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernel.h"
#include "kernels/scalar_functions.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::attributes;
using test::check_op;
using test::make_desc;
using test::reference;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();

// As many as whole vectors and a remainder take; `infinities`: also those.
Tensor specials(bool infinities = true) {
  const float largest = infinities ? kInfinity : 80.f;
  const std::vector<float> some{kNaN,    -largest, largest, -0.f, 0.f,  1e-40f,
                                -1e-40f, 1.5f,     -1.5f,   30.f, -30.f};
  std::vector<float> all;
  for (int i = 0; i < 39; ++i) all.push_back(some[static_cast<size_t>(i) % some.size()]);
  return Tensor::of(ElementType::f32, {39}, all);
}

void expect_kept(const OpDesc& desc, const std::vector<Tensor>& inputs) {
  const std::vector<float> x = inputs[0].to_floats(), y = reference(desc, inputs)[0].to_floats();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(!std::isnan(x[i]) || std::isnan(y[i])) << desc.type << " " << i;
  check_op(desc, inputs);
}

TEST(NoNumber, StaysNoneInEachFunction) {
  struct Function {
    const char* type;
    int opset;
    Attributes attributes = {};
    bool infinities = true;  // false: the product of a gate of 0 and an infinity
  };
  for (const Function& f : std::vector<Function>{
           {"Abs", 1},
           {"Ceiling", 1},
           {"Clamp", 1, attributes({{"min", "-1"}, {"max", "6"}})},
           {"Clamp", 1, attributes({{"min", "0"}, {"max", "3.4028234663852886e+38"}})},
           {"Cos", 1},
           {"Elu", 1, attributes({{"alpha", "0.5"}})},
           {"Erf", 1},
           {"Exp", 1},
           {"Floor", 1},
           {"Gelu", 7, attributes({{"approximation_mode", "ERF"}}), false},
           {"Gelu", 7, attributes({{"approximation_mode", "TANH"}}), false},
           {"HSigmoid", 5},
           {"HSwish", 4, {}, false},
           {"Mish", 4, {}, false},
           {"Negative", 1},
           {"ReLU", 1},
           {"Round", 5, attributes({{"mode", "half_to_even"}})},
           {"Sigmoid", 1},
           {"Sign", 1},
           {"SoftPlus", 4},
           {"SoftSign", 9},
           {"Sqrt", 1},
           {"Swish", 4, {}, false},
           {"Tanh", 1}}) {
    const std::vector<Tensor> inputs{specials(f.infinities)};
    expect_kept(make_desc(f.type, f.opset, f.attributes, inputs, {false}), inputs);
  }
}

TEST(NoNumber, OfEitherOperandStaysNone) {
  const Tensor x = specials();
  std::vector<float> others = x.to_floats();
  std::rotate(others.begin(), others.begin() + 7, others.end());
  const Tensor y = Tensor::of(ElementType::f32, x.shape(), others);
  for (const char* type : {"Maximum", "Minimum", "Add"}) {
    const std::vector<Tensor> inputs{x, y};
    const OpDesc desc = make_desc(type, 1, {}, inputs, {false, false});
    const std::vector<float> z = reference(desc, inputs)[0].to_floats();
    for (size_t i = 0; i < z.size(); ++i)
      EXPECT_TRUE(!std::isnan(others[i]) || std::isnan(z[i])) << type << " " << i;
    expect_kept(desc, inputs);
  }
  const std::vector<Tensor> sloped{x, Tensor::of(ElementType::f32, {1}, std::vector<float>{0.1f})};
  expect_kept(make_desc("PReLU", 1, {}, sloped, {false, true}), sloped);
}

// In a tail as by itself: a convolution's activation is one.
TEST(NoNumber, StaysNoneInATail) {
  const std::vector<Tensor> inputs{specials(false)};
  OpDesc desc = make_desc("Negative", 1, {}, inputs, {false});
  desc.own_inputs = 1;
  desc.tail = {{"relu"}, {"clamp", 0.f, 6.f}, {"to_level", -3.f, 252.f}, {"sigmoid"}};
  expect_kept(desc, inputs);
}

TEST(NoNumber, IsTheLargestOfAWindowWhereverItStands) {
  for (int at = 0; at < 4; ++at) {
    std::vector<float> values(2 * 4 * 4 * 4, 1.f);
    values[static_cast<size_t>(at / 2 * 4 + at % 2)] = kNaN;  // in the first window of 2x2
    values[40] = -kInfinity;
    const std::vector<Tensor> inputs{Tensor::of(ElementType::f32, {2, 4, 4, 4}, values)};
    const OpDesc desc = make_desc("MaxPool", 1,
                                  attributes({{"kernel", "2,2"},
                                              {"strides", "2,2"},
                                              {"pads_begin", "0,0"},
                                              {"pads_end", "0,0"},
                                              {"rounding_type", "floor"}}),
                                  inputs, {false});
    const std::vector<float> y = reference(desc, inputs)[0].to_floats();
    EXPECT_TRUE(std::isnan(y[0])) << at;
    EXPECT_EQ(std::count_if(y.begin(), y.end(), [](float v) { return std::isnan(v); }), 1) << at;
    check_op(desc, inputs);
    const std::vector<Tensor> reduced{inputs[0],
                                      Tensor::of(ElementType::i64, {1}, std::vector<int>{3})};
    if (at < 2)
      check_op(
          make_desc("ReduceMax", 1, attributes({{"keep_dims", "true"}}), reduced, {false, true}),
          reduced);
  }
}

TEST(NoNumber, IsTheLowestByte) {
  const UnaryFunction* to_byte = find_unary("to_byte");
  EXPECT_EQ(to_byte->apply(kNaN, 0, 255), 0);
  EXPECT_EQ(to_byte->apply(2.5f, -3, 252), 5);  // halves to the even number before the shift
  EXPECT_EQ(to_byte->apply(-9.f, -3, 252), 0);
}

}  // namespace
}  // namespace clinfer
