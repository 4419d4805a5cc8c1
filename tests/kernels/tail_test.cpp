// Operands of tails with fewer channels than the output: 0 behind them, in every kernel that takes
// them.
#include "kernels/tail.h"

#include "tests/kernels/op_test.h"

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
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
    EXPECT_NE(family->reject(desc, gpu), "");
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

}  // namespace
}  // namespace clinfer::test
