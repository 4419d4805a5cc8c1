// Operands of tails with fewer channels than the output: missing channels are 0, in every kernel
// that accepts them.
#include "kernels/tail.h"

#include "tests/kernels/op_test.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

// `type`: of the operand, float or bytes.
void check_padded(OpDesc desc, std::vector<Tensor> inputs, int64_t channels, ElementType type) {
  Shape shape = desc.outputs[0].shape;
  shape[1] = channels;
  inputs.push_back(type == ElementType::u8 ? random_ints(type, shape, 0, 255, 4)
                                           : random_tensor(shape, -1, 1, 4));
  desc.inputs.push_back(with_gaps(TensorDesc::channels_last(type, shape), 3, 1));
  desc.constants.push_back({});
  PostOp add{"add", 0.01f, -1.28f, static_cast<int>(inputs.size()) - 1};
  add.padded = true;
  desc.tail = {add, {"relu"}};
  EXPECT_GT(check_op(desc, inputs), 0u);
  DeviceTraits gpu = gpu_traits();
  EXPECT_GT(check_op(desc, inputs, {}, &gpu), 0u);
  desc.tail[0].padded = false;
  EXPECT_TRUE(refusals(desc, gpu).contains("a tail operand would widen the output"));
  EXPECT_FALSE(refusals(desc, gpu).contains("")) << "a family takes it";
}

OpDesc convolution(std::vector<Tensor>& inputs) {
  inputs = {random_tensor({2, 6, 5, 7}, -1, 1, 1), random_tensor({27, 6, 1, 1}, -1, 1, 2)};
  return make_desc(
      "Convolution", 1,
      attributes(
          {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}}),
      inputs, {false, true});
}

TEST(Tail, PaddedOperand) {
  std::vector<Tensor> inputs;
  const OpDesc desc = convolution(inputs);
  check_padded(desc, inputs, 13, ElementType::f32);
  check_padded(desc, inputs, 16, ElementType::u8);
}

TEST(Tail, PaddedOperandOfAReference) {
  std::vector<Tensor> inputs;
  OpDesc desc = convolution(inputs);
  const Tensor plain = reference(desc, inputs)[0];
  inputs.push_back(random_tensor({2, 5, 5, 7}, -1, 1, 4));
  desc.inputs.push_back(TensorDesc::channels_last(ElementType::f32, {2, 5, 5, 7}));
  desc.constants.push_back({});
  desc.tail.push_back({"add", 0, 0, 2});
  desc.tail[0].padded = true;
  const Tensor sum = reference(desc, inputs)[0];
  for (int64_t n = 0, i = 0; n < 2; ++n)
    for (int64_t c = 0; c < 27; ++c)
      for (int64_t p = 0; p < 35; ++p, ++i)
        ASSERT_FLOAT_EQ(
            sum.data<float>()[i],
            plain.data<float>()[i] + (c < 5 ? inputs[2].data<float>()[(n * 5 + c) * 35 + p] : 0.f));
}

// Adds a value per channel, keeps the sum in a layout with gaps, and continues with a clamp. Then
// the same steps with a fork, where the kept value has steps of its own.
void check_kept(OpDesc desc, std::vector<Tensor> inputs, int64_t gap, int64_t offset) {
  Shape channels(desc.outputs[0].shape.size(), 1);
  const size_t axis = desc.type == "MatMul" ? channels.size() - 1 : 1;
  channels[axis] = desc.outputs[0].shape[axis];
  inputs.push_back(random_tensor(channels, 0, 2, 5));
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, channels));
  desc.constants.push_back(inputs.back());
  desc.outputs.push_back(with_gaps(desc.outputs[0], gap, offset));
  desc.tail = {
      {"add", 0, 0, static_cast<int>(inputs.size()) - 1}, {"keep"}, {"clamp", -0.5f, 0.5f}};
  const std::vector<Tensor> values = reference(desc, inputs);
  EXPECT_NE(values[0].to_floats(), values[1].to_floats());
  EXPECT_GT(check_op(desc, inputs), 0u);
  const DeviceTraits gpu = tiny_traits();
  EXPECT_GT(check_op(desc, inputs, {}, &gpu), 0u);

  desc.tail.insert(desc.tail.begin() + 1, {{"fork"}, {"negative"}, {"relu"}});
  const std::vector<Tensor> forked = reference(desc, inputs);
  EXPECT_EQ(values[0].to_floats(), forked[0].to_floats());
  std::vector<float> expected = values[1].to_floats();
  for (float& value : expected) value = std::max(-value, 0.f);
  EXPECT_EQ(expected, forked[1].to_floats());
  EXPECT_GT(check_op(desc, inputs), 0u);
  EXPECT_GT(check_op(desc, inputs, {}, &gpu), 0u);
  for (auto* list : {&desc.inputs, &desc.outputs})
    for (TensorDesc& tensor : *list) tensor.type = ElementType::f16;
  EXPECT_GT(check_op(desc, inputs, {2e-3, 2e-3}, &gpu), 0u);
}

TEST(Tail, KeptValues) {
  const auto strides = attributes(
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}});
  const auto image = random_tensor({2, 6, 5, 7}, -1, 1, 1);
  std::vector<Tensor> inputs;
  for (const auto& [channels, size, gap] :
       {std::array<int64_t, 3>{27, 1, 3}, {32, 1, 0}, {27, 3, 5}, {32, 3, 16}}) {
    inputs = {image, random_tensor({channels, 6, size, size}, -1, 1, 2)};
    check_kept(make_desc("Convolution", 1, strides, inputs, {false, true}), inputs, gap, gap);
  }
  inputs = {random_tensor({2, 16, 5, 7}, -1, 1, 1), random_tensor({16, 1, 1, 3, 3}, -1, 1, 2)};
  check_kept(make_desc("GroupConvolution", 1, strides, inputs, {false, true}), inputs, 16, 16);
  inputs = {image, random_tensor({6, 9, 3, 3}, -1, 1, 2)};
  check_kept(make_desc("ConvolutionBackpropData", 1, strides, inputs, {false, true}), inputs, 3, 1);
  inputs = {random_tensor({5, 37}, -1, 1, 1), random_tensor({37, 10}, -1, 1, 2)};
  check_kept(make_desc("MatMul", 1, {}, inputs, {false, true}), inputs, 2, 1);
}

// An operation with several outputs cannot have a keep, and only floats of the output's shape can
// be kept.
TEST(Tail, WhatCannotBeKept) {
  std::vector<Tensor> inputs;
  OpDesc desc = convolution(inputs);
  const DeviceTraits gpu = gpu_traits();
  const auto taken = [&] {
    const auto& families = find_op(desc.type, desc.opset)->families;
    return std::any_of(families.begin(), families.end(), [&](const KernelFamily* family) {
      return family->reject(desc, gpu).empty();
    });
  };
  desc.tail = {{"keep"}};
  EXPECT_FALSE(taken());
  desc.outputs.push_back(desc.outputs[0]);
  EXPECT_TRUE(taken());
  desc.outputs[1].type = ElementType::u8;
  EXPECT_FALSE(taken());
  desc.outputs[1] = TensorDesc::channels_last(ElementType::f32, {2, 27, 5, 1});
  EXPECT_FALSE(taken());
  desc.outputs[1] = TensorDesc::row_major(ElementType::f32, {2, 27, 5, 7});
  EXPECT_TRUE(
      refusals(desc, gpu).contains("the channels of what is kept are not adjacent in memory"));
}

}  // namespace
}  // namespace clinfer::test
