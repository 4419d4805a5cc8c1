// BinaryConvolution: values computed by hand as a convolution of signs, and the kernel against the
// reference.
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

OpDesc describe_binary(const Shape& data, const Shape& filter, const char* strides,
                       const char* pads, const char* pad_value, std::vector<Tensor>& inputs) {
  inputs = {random_tensor(data, -1, 1, 1), random_ints(ElementType::u8, filter, 0, 1, 2)};
  return make_desc("BinaryConvolution", 1,
                   attributes({{"strides", strides},
                               {"pads_begin", pads},
                               {"pads_end", pads},
                               {"mode", "xnor-popcount"},
                               {"pad_value", pad_value}}),
                   inputs, {false, true});
}

TEST(BinaryConvolution, EqualsAConvolutionOfSigns) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe_binary({2, 5, 4, 4}, {3, 5, 3, 3}, "1,1", "1,1", "0", inputs);
  std::vector<float> data = inputs[0].to_floats(), bits = inputs[1].to_floats();
  for (float& v : data) v = v > 0 ? 1.0f : -1.0f;
  for (float& v : bits) v = v > 0 ? 1.0f : -1.0f;
  const std::vector<Tensor> signs{floats({2, 5, 4, 4}, data), floats({3, 5, 3, 3}, bits)};
  const OpDesc same =
      make_desc("Convolution", 1,
                attributes({{"strides", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}), signs,
                {false, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(), reference(same, signs)[0].to_floats());
}

TEST(BinaryConvolution, PadsCountByTheirSign) {
  for (const auto& [pad, want] :
       {std::pair{"-1.0", 3.0f}, std::pair{"0", 1.0f}, std::pair{"1", -1.0f}}) {
    std::vector<Tensor> inputs{floats({1, 1, 1, 1}, {-2}),
                               Tensor::of<int>(ElementType::u8, {1, 1, 1, 3}, {0, 0, 0})};
    const OpDesc desc = make_desc("BinaryConvolution", 1,
                                  attributes({{"strides", "1,1"},
                                              {"pads_begin", "0,1"},
                                              {"pads_end", "0,1"},
                                              {"mode", "xnor-popcount"},
                                              {"pad_value", pad}}),
                                  inputs, {false, true});
    EXPECT_EQ(reference(desc, inputs)[0].to_floats()[0], want);
  }
}

TEST(BinaryConvolution, Refuses) {
  EXPECT_TRUE(says(
      error_of("BinaryConvolution", 1, attributes({{"strides", "1,1"}, {"mode", "other"}}),
               {random_tensor({1, 2, 3, 3}), random_ints(ElementType::u8, {2, 2, 1, 1}, 0, 1)}),
      "mode \"other\""));
  EXPECT_TRUE(says(error_of("BinaryConvolution", 1, attributes({{"strides", "1,1"}}),
                            {random_tensor({1, 2, 3, 3}), random_tensor({2, 2, 1, 1})}),
                   "the weights are not bits"));
}

TEST(BinaryConvolution, Kernel) {
  std::vector<Tensor> inputs;
  for (const char* pad : {"-1", "0", "1"}) {
    OpDesc desc = describe_binary({2, 35, 5, 6}, {7, 35, 3, 3}, "2,1", "1,1", pad, inputs);
    desc.tail.push_back({"relu"});
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[0] = with_gaps(desc.outputs[0], 2, 1);
    check_op(desc, inputs);
  }
}

}  // namespace
}  // namespace clinfer::test
