// ConvolutionBackpropData and GroupConvolutionBackpropData: shapes, reference values computed by
// hand, and every family against the reference.
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

struct DeconvolutionCase {
  const char* type;
  Shape data, filter;
  const char *strides, *pads_begin, *pads_end, *dilations;
  const char* auto_pad = "explicit";
  const char* output_padding = "";
  std::vector<int64_t> stated = {};
};

OpDesc describe_deconvolution(const DeconvolutionCase& c, std::vector<Tensor>& inputs) {
  inputs = {random_tensor(c.data, -1, 1, 1), random_tensor(c.filter, -1, 1, 2)};
  if (!c.stated.empty()) inputs.push_back(ints(c.stated));
  Attributes a = attributes({{"strides", c.strides},
                             {"pads_begin", c.pads_begin},
                             {"pads_end", c.pads_end},
                             {"dilations", c.dilations},
                             {"auto_pad", c.auto_pad}});
  if (*c.output_padding) a.set("output_padding", c.output_padding);
  return make_desc(c.type, 1, a, inputs, {false, true, true});
}

Shape deconvolution_shape(const DeconvolutionCase& c) {
  std::vector<Tensor> inputs;
  return describe_deconvolution(c, inputs).outputs[0].shape;
}

void check_deconvolution(const DeconvolutionCase& c, bool with_tail = false) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_deconvolution(c, inputs);
  if (with_tail) {
    Shape bias(desc.outputs[0].shape.size(), 1);
    bias[1] = desc.outputs[0].shape[1];
    for (const Shape& shape : {bias, desc.outputs[0].shape}) {
      inputs.push_back(random_tensor(shape, -1, 1, 3));
      const bool constant = shape == bias;
      desc.inputs.push_back(constant ? TensorDesc::row_major(ElementType::f32, shape)
                                     : TensorDesc::channels_last(ElementType::f32, shape));
      desc.constants.push_back(constant ? inputs.back() : Tensor());
      desc.tail.push_back({"add", 0, 0, static_cast<int>(inputs.size()) - 1});
    }
    desc.tail.push_back({"relu"});
  }
  check_op(desc, inputs);
}

constexpr const char* kBackprop = "ConvolutionBackpropData";
constexpr const char* kGrouped = "GroupConvolutionBackpropData";

TEST(Deconvolution, Shapes) {
  EXPECT_EQ(
      deconvolution_shape({kBackprop, {1, 5, 4, 5}, {5, 3, 2, 2}, "2,2", "0,0", "0,0", "1,1"}),
      (Shape{1, 3, 8, 10}));
  EXPECT_EQ(
      deconvolution_shape(
          {kBackprop, {1, 8, 4, 4}, {8, 17, 3, 3}, "2,2", "1,1", "1,1", "1,1", "explicit", "1,1"}),
      (Shape{1, 17, 8, 8}));
  EXPECT_EQ(deconvolution_shape({kBackprop,
                                 {1, 4, 5, 5},
                                 {4, 3, 3, 3},
                                 "2,2",
                                 "7,7",
                                 "7,7",
                                 "1,1",
                                 "same_lower",
                                 "",
                                 {10, 9}}),
            (Shape{1, 3, 10, 9}));
  EXPECT_EQ(
      deconvolution_shape(
          {kGrouped, {1, 6, 4, 4}, {2, 3, 4, 3, 3}, "2,2", "1,1", "1,1", "1,1", "same_upper"}),
      (Shape{1, 8, 9, 9}));  // without a stated shape nothing is cut off
}

TEST(Deconvolution, RefusesWhatCannotBe) {
  EXPECT_THROW(
      deconvolution_shape({kBackprop, {1, 3, 4, 4}, {4, 3, 3, 3}, "1,1", "0,0", "0,0", "1,1"}),
      Error);
  EXPECT_THROW(
      deconvolution_shape({kBackprop, {1, 4, 4, 4}, {4, 3, 3, 3}, "1,1", "9,9", "9,9", "1,1"}),
      Error);
  EXPECT_THROW(
      deconvolution_shape({kBackprop, {1, 4, 4, 4}, {4, 3, 3, 3}, "0,1", "0,0", "0,0", "1,1"}),
      Error);
  EXPECT_THROW(
      deconvolution_shape(
          {kBackprop, {1, 4, 4, 4}, {4, 3, 3, 3}, "1,1", "0,0", "0,0", "1,1", "explicit", "", {4}}),
      Error);
  const auto stated = [](const char* auto_pad, const Shape& shape) {
    return deconvolution_shape(
        {kBackprop, {1, 4, 4, 4}, {4, 3, 3, 3}, "1,1", "0,0", "0,0", "1,1", auto_pad, "", shape});
  };
  EXPECT_THROW(stated("explicit", {4, -4}), Error);
  EXPECT_THROW(stated("same_upper", {4, std::numeric_limits<int64_t>::min()}), Error);
}

TEST(Deconvolution, ReferenceByHand) {
  // Each of two pixels adds the kernel 1 10 100, two apart; the first column is cut off.
  std::vector<Tensor> inputs{floats({1, 1, 1, 2}, {1, 2}), floats({1, 1, 1, 3}, {1, 10, 100})};
  const OpDesc desc = make_desc(
      kBackprop, 1,
      attributes(
          {{"strides", "1,2"}, {"pads_begin", "0,1"}, {"pads_end", "0,0"}, {"dilations", "1,1"}}),
      inputs, {false, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(), (std::vector<float>{10, 102, 20, 200}));
}

// An odd number of columns to cut: same_upper cuts the larger part at the beginning.
TEST(Deconvolution, UnevenCut) {
  for (const auto& [mode, want] : {std::pair{"same_upper", std::vector<float>{10, 102, 20}},
                                   std::pair{"same_lower", std::vector<float>{10, 102, 20}}}) {
    std::vector<Tensor> inputs{floats({1, 1, 2}, {1, 2}), floats({1, 1, 3}, {1, 10, 100}),
                               ints({3})};
    const OpDesc desc = make_desc(kBackprop, 1, attributes({{"strides", "2"}, {"auto_pad", mode}}),
                                  inputs, {false, true, true});
    EXPECT_EQ(reference(desc, inputs)[0].to_floats(), want);
  }
  std::vector<Tensor> inputs{floats({1, 1, 2}, {1, 2}), floats({1, 1, 3}, {1, 10, 100}), ints({4})};
  const auto cut = [&](const char* mode) {
    return reference(make_desc(kBackprop, 1, attributes({{"strides", "2"}, {"auto_pad", mode}}),
                               inputs, {false, true, true}),
                     inputs)[0]
        .to_floats();
  };
  EXPECT_EQ(cut("same_upper"), (std::vector<float>{10, 102, 20, 200}));
  EXPECT_EQ(cut("same_lower"), (std::vector<float>{1, 10, 102, 20}));
}

TEST(Deconvolution, Plain) {
  check_deconvolution({kBackprop, {1, 5, 4, 5}, {5, 19, 2, 2}, "2,2", "0,0", "0,0", "1,1"});
  check_deconvolution({kBackprop, {2, 13, 3, 4}, {13, 8, 4, 4}, "2,2", "1,1", "1,1", "1,1"});
}
TEST(Deconvolution, UnevenStridesAndDilations) {
  check_deconvolution({kBackprop, {1, 3, 4, 6}, {3, 5, 3, 5}, "2,3", "0,1", "1,2", "1,1"});
  check_deconvolution({kBackprop, {1, 3, 5, 5}, {3, 2, 3, 3}, "2,2", "0,0", "0,0", "2,3"});
  check_deconvolution(
      {kBackprop, {1, 3, 5, 5}, {3, 2, 3, 3}, "2,2", "-1,-1", "0,0", "1,1"});  // zeros in front
  check_deconvolution(
      {kBackprop, {1, 3, 2, 2}, {3, 2, 2, 2}, "3,3", "0,0", "0,0", "1,1"});  // gaps between kernels
}
TEST(Deconvolution, OneAndThreeDimensions) {
  check_deconvolution({kBackprop, {2, 3, 7}, {3, 4, 3}, "2", "1", "0", "1"});
  check_deconvolution(
      {kBackprop, {1, 3, 3, 4, 4}, {3, 2, 2, 2, 2}, "2,2,1", "0,0,0", "0,0,1", "1,1,1"});
}
TEST(Deconvolution, Groups) {
  check_deconvolution({kGrouped, {1, 6, 4, 4}, {2, 3, 5, 3, 3}, "2,2", "1,1", "1,1", "1,1"}, true);
  check_deconvolution({kGrouped, {2, 12, 3, 5}, {12, 1, 1, 4, 4}, "2,2", "1,1", "1,1", "1,1"},
                      true);  // depthwise
  check_deconvolution({kGrouped, {1, 13, 3, 3}, {13, 1, 1, 3, 3}, "2,2", "1,1", "1,1", "1,1"});
}
TEST(Deconvolution, Tails) {
  check_deconvolution({kBackprop, {1, 5, 4, 9}, {5, 10, 3, 3}, "2,2", "1,1", "1,1", "1,1"}, true);
}

TEST(Deconvolution, ViewsHalvesAndRunTimeWeights) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_deconvolution(
      {kBackprop, {1, 5, 4, 5}, {5, 12, 3, 3}, "2,2", "1,1", "0,0", "1,1"}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 7, 2);
  check_op(desc, inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, inputs, {2e-3, 2e-3});
  OpDesc open = describe_deconvolution(
      {kBackprop, {1, 5, 4, 5}, {5, 12, 3, 3}, "2,2", "1,1", "0,0", "1,1"}, inputs);
  open.constants[1] = {};
  check_op(open, inputs);
}

TEST(Deconvolution, PlansOfAGpu) {
  const DeviceTraits gpu = gpu_traits();
  std::vector<Tensor> inputs;
  const OpDesc desc = describe_deconvolution(
      {kBackprop, {1, 6, 5, 7}, {6, 9, 4, 4}, "2,2", "1,1", "1,1", "1,1"}, inputs);
  check_op(desc, inputs, {}, &gpu);
}

}  // namespace
}  // namespace clinfer::test
