// Element functions: known values, broadcasting, strides, chains.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

std::vector<float> values_of(const std::string& type, int opset, const Attributes& attributes, const std::vector<Tensor>& inputs,
                             const std::vector<bool>& constant = {}) {
  return reference(make_desc(type, opset, attributes, inputs, constant), inputs)[0].to_floats();
}

Tensor floats(Shape shape, const std::vector<float>& values) { return Tensor::of(ElementType::f32, std::move(shape), values); }

TEST(Elementwise, KnownValues) {
  const Tensor x = floats({4}, {-2, -0.5, 0.5, 3});
  EXPECT_EQ(values_of("ReLU", 1, {}, {x}), (std::vector<float>{0, 0, 0.5, 3}));
  EXPECT_EQ(values_of("Clamp", 1, attributes({{"min", "-1"}, {"max", "1"}}), {x}), (std::vector<float>{-1, -0.5, 0.5, 1}));
  EXPECT_EQ(values_of("Round", 5, attributes({{"mode", "half_to_even"}}), {x}), (std::vector<float>{-2, 0, 0, 3}));
  EXPECT_EQ(values_of("Round", 5, attributes({{"mode", "half_away_from_zero"}}), {x}), (std::vector<float>{-2, -1, 1, 3}));
  EXPECT_FLOAT_EQ(values_of("Elu", 1, attributes({{"alpha", "2"}}), {x})[0], static_cast<float>(2 * (std::exp(-2.0) - 1)));
  EXPECT_FLOAT_EQ(values_of("Swish", 4, {}, {x})[3], static_cast<float>(3 / (1 + std::exp(-3.0))));
  EXPECT_FLOAT_EQ(values_of("Mish", 4, {}, {x})[3], static_cast<float>(3 * std::tanh(std::log1p(std::exp(3.0)))));
}

TEST(Elementwise, IntegersDivideAsPythonDoes) {
  const Tensor x = random_ints(ElementType::i64, {4}, 0, 0), y = x;
  const auto ints = [](std::vector<int> v) { return Tensor::of(ElementType::i64, {static_cast<int64_t>(v.size())}, v); };
  const auto result = [&](const char* type) {
    const std::vector<Tensor> inputs{ints({7, -7, 7, -7}), ints({2, 2, -2, -2})};
    return reference(make_desc(type, 1, {}, inputs, {}), inputs)[0].to_ints();
  };
  EXPECT_EQ(result("Divide"), (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(result("FloorMod"), (std::vector<int64_t>{1, 1, -1, -1}));
  EXPECT_EQ(result("Mod"), (std::vector<int64_t>{1, -1, 1, -1}));
  const std::vector<Tensor> zero{ints({1}), ints({0})};
  EXPECT_THROW(reference(make_desc("Divide", 1, {}, zero, {}), zero), Error);
}

TEST(Elementwise, UnaryKernels) {
  const Tensor x = random_tensor({2, 5, 3, 7}, -3, 3);
  for (const auto& [type, opset] : {std::pair{"Sigmoid", 1}, {"Tanh", 1}, {"HSwish", 4}, {"Erf", 1}}) {
    OpDesc desc = make_desc(type, opset, {}, {x}, {});
    check_op(desc, {x}, {1e-5, 1e-5});
  }
  OpDesc strided = make_desc("Exp", 1, {}, {x}, {});
  strided.inputs[0] = with_gaps(strided.inputs[0]);
  strided.outputs[0] = with_gaps(strided.outputs[0], 2, 1);
  check_op(strided, {x}, {1e-5, 1e-5});
}

TEST(Elementwise, Broadcasting) {
  const Shape whole{2, 5, 3, 7};
  for (const Shape& other : {Shape{}, Shape{7}, Shape{5, 1, 1}, Shape{2, 1, 3, 7}, Shape{1, 5, 1, 1}, Shape{3, 1}, whole}) {
    const Tensor x = random_tensor(whole), y = random_tensor(other, 0.5, 2, 2);
    check_op(make_desc("Divide", 1, {}, {x, y}, {}), {x, y});
    check_op(make_desc("Subtract", 1, {}, {y, x}, {true, false}), {y, x});
  }
  const Tensor row = random_tensor({1, 5, 1, 7}), column = random_tensor({2, 1, 3, 1}, -1, 1, 2);
  check_op(make_desc("Add", 1, {}, {row, column}, {}), {row, column});
}

TEST(Elementwise, PReluSlopeLiesAlongChannels) {
  const Tensor x = random_tensor({1, 6, 4, 4}), slope = random_tensor({6}, 0, 1, 2);
  EXPECT_GT(check_op(make_desc("PReLU", 1, {}, {x, slope}, {false, true}), {x, slope}), 0u);
  const std::vector<float> values = values_of("PReLU", 1, {}, {floats({1, 2, 1, 1}, {-1, -1}), floats({2}, {0.5, 0.25})}, {false, true});
  EXPECT_EQ(values, (std::vector<float>{-0.5, -0.25}));
}

TEST(Elementwise, ChainsAndLayoutChanges) {
  const Tensor x = random_tensor({1, 19, 4, 5}), y = random_tensor({1, 19, 4, 5}, -1, 1, 2), bias = random_tensor({1, 19, 1, 1}, -1, 1, 3);
  OpDesc desc = make_desc("Add", 1, {}, {x, y}, {});
  desc.inputs[0] = TensorDesc::row_major(ElementType::f32, x.shape());
  check_op(desc, {x, y});
  desc.inputs[0] = desc.inputs[1];
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, bias.shape()));
  desc.constants.push_back(bias);
  desc.tail = {{"relu", 0, 0, -1, false}, {"subtract", 0, 0, 2, true}};
  check_op(desc, {x, y, bias});
}

TEST(Elementwise, PicturesOfThreeChannels) {
  const Tensor scale = random_tensor({1, 3, 1, 1}, 0.5, 2, 2), shift = random_tensor({3, 1, 1}, -1, 1, 3);
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

TEST(Elementwise, HalfStorage) {
  const Tensor x = random_tensor({1, 19, 4, 5}), y = random_tensor({1, 19, 1, 1}, 0.5, 2, 2);
  OpDesc desc = make_desc("Multiply", 1, {}, {x, y}, {false, false});
  for (TensorDesc& input : desc.inputs) input.type = ElementType::f16;
  desc.outputs[0].type = ElementType::f16;
  check_op(desc, {x, y}, {1e-3, 1e-3});
}

TEST(Elementwise, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(make_desc("Add", 1, {}, {random_tensor({2, 3}), random_tensor({4})}, {}), Error);
  EXPECT_THROW(make_desc("Add", 1, attributes({{"auto_broadcast", "none"}}), {random_tensor({2, 3}), random_tensor({3})}, {}), Error);
}

}  // namespace
}  // namespace clinfer::test
