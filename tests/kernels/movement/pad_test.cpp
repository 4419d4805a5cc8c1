// Pad: values of every mode computed by hand, and the family with many layouts and element types.
#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

OpDesc describe_pad(const char* mode, const Tensor& data, const std::vector<int>& begin,
                    const std::vector<int>& end, std::vector<Tensor>& inputs, int opset = 12) {
  const int64_t n = static_cast<int64_t>(begin.size());
  inputs = {data, Tensor::of<int>(ElementType::i64, {n}, begin),
            Tensor::of<int>(ElementType::i64, {n}, end),
            Tensor::of<float>(ElementType::f32, {}, {7}).convert(data.type())};
  return make_desc("Pad", opset, attributes({{"pad_mode", mode}}), inputs,
                   {false, true, true, true});
}

std::vector<float> row(const char* mode, int begin, int end, int opset = 12) {
  std::vector<Tensor> inputs;
  const Tensor data = Tensor::of<float>(ElementType::f32, {4}, {1, 2, 3, 4});
  return reference(describe_pad(mode, data, {begin}, {end}, inputs, opset), inputs)[0].to_floats();
}

TEST(Pad, ReferenceByHand) {
  using Row = std::vector<float>;
  EXPECT_EQ(row("constant", 2, 1), (Row{7, 7, 1, 2, 3, 4, 7}));
  EXPECT_EQ(row("edge", 2, 1), (Row{1, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(row("reflect", 2, 3), (Row{3, 2, 1, 2, 3, 4, 3, 2, 1}));
  EXPECT_EQ(row("symmetric", 2, 4), (Row{2, 1, 1, 2, 3, 4, 4, 3, 2, 1}));
  EXPECT_EQ(row("constant", -1, 2), (Row{2, 3, 4, 7, 7}));
  EXPECT_EQ(row("reflect", 2, -2), (Row{3, 2, 1, 2}));
  EXPECT_EQ(row("edge", -2, -2), Row{});
}

TEST(Pad, RefusesWhatCannotBe) {
  EXPECT_THROW(row("constant", -1, 0, 1), Error);
  EXPECT_THROW(row("constant", -3, -2), Error);
  EXPECT_THROW(row("reflect", 4, 0), Error);
  EXPECT_THROW(row("symmetric", 0, 5), Error);
  EXPECT_THROW(row("mirror", 0, 1), Error);
  std::vector<Tensor> inputs;
  EXPECT_THROW(describe_pad("edge", random_tensor({2, 3}), {1}, {1}, inputs), Error);
}

TEST(Pad, Images) {
  std::vector<Tensor> inputs;
  const DeviceTraits gpu = gpu_traits();
  for (const char* mode : {"constant", "edge", "reflect", "symmetric"}) {
    OpDesc desc =
        describe_pad(mode, random_tensor({2, 19, 5, 6}), {0, 0, 2, 1}, {0, 0, 1, 3}, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[0] = with_gaps(desc.outputs[0], 7, 16);
    check_op(desc, inputs);
  }
  check_op(
      describe_pad("constant", random_tensor({1, 3, 5, 6}), {0, 0, 1, 1}, {0, 0, 1, 1}, inputs),
      inputs, {}, &gpu);
}

// Windows of tokens are filled up to whole ones: channels are dense, and neighbouring work-items
// copy neighbouring vectors.
TEST(Pad, TokensOnAGpu) {
  std::vector<Tensor> inputs;
  const DeviceTraits gpu = gpu_traits();
  for (const int64_t channels : {8, 6, 5, 1})
    for (const ElementType type : {ElementType::f16, ElementType::f32, ElementType::u8}) {
      const Tensor data = random_ints(ElementType::i32, {2, 5, 6, channels}, 0, 99).convert(type);
      OpDesc desc = describe_pad("constant", data, {0, 0, 0, 0}, {0, 2, 1, 0}, inputs);
      check_op(desc, inputs, {}, &gpu);
      desc.inputs[0] = with_gaps(desc.inputs[0]);
      check_op(desc, inputs, {}, &gpu);
      check_op(describe_pad("reflect", data, {0, 1, 2, 0}, {0, 2, 0, 0}, inputs), inputs, {}, &gpu);
    }
}

TEST(Pad, ChannelsRowsAndCuts) {
  std::vector<Tensor> inputs;
  check_op(describe_pad("reflect", random_tensor({1, 7, 3, 4}), {0, 2, 0, 1}, {0, 1, 1, 0}, inputs),
           inputs);
  check_op(
      describe_pad("constant", random_tensor({1, 7, 5, 6}), {0, -1, 2, -2}, {0, 1, -1, 1}, inputs),
      inputs);
  check_op(describe_pad("edge", random_tensor({3, 17}), {1, 2}, {0, -3}, inputs), inputs);
  check_op(describe_pad("constant", random_tensor({2, 3, 2, 3, 4}), {1, 0, 1, 0, 2},
                        {0, 1, 0, 2, 0}, inputs),
           inputs);
}

TEST(Pad, OtherTypes) {
  std::vector<Tensor> inputs;
  check_op(describe_pad("constant", random_ints(ElementType::i32, {2, 3, 4}, -99, 99), {0, 0, 1},
                        {0, 1, 0}, inputs),
           inputs);
  check_op(describe_pad("constant", random_ints(ElementType::u8, {2, 3, 4}, 0, 99), {0, 0, 1},
                        {0, 1, 0}, inputs),
           inputs);
  OpDesc desc =
      describe_pad("constant", random_tensor({1, 9, 4, 5}), {0, 0, 1, 1}, {0, 0, 1, 1}, inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, inputs, {1e-3, 1e-3});
}

}  // namespace
}  // namespace clinfer::test
