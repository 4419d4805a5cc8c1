// Convolution and GroupConvolution: every family against the reference, with the engine's layouts
// and on views.
#include "tests/kernels/op_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

struct PlainCase {
  const char* type;
  Shape data, filter;
  const char *strides, *pads_begin, *pads_end, *dilations;
  const char* auto_pad = "explicit";
};

OpDesc describe_plain(const PlainCase& c, std::vector<Tensor>& inputs) {
  inputs = {random_tensor(c.data, -1, 1, 1), random_tensor(c.filter, -1, 1, 2)};
  return make_desc(c.type, 1,
                   attributes({{"strides", c.strides},
                               {"pads_begin", c.pads_begin},
                               {"pads_end", c.pads_end},
                               {"dilations", c.dilations},
                               {"auto_pad", c.auto_pad}}),
                   inputs, {false, true});
}

Shape plain_shape(const PlainCase& c) {
  std::vector<Tensor> inputs;
  return describe_plain(c, inputs).outputs[0].shape;
}

void add_bias_relu(OpDesc& desc, std::vector<Tensor>& inputs) {
  Shape bias(desc.outputs[0].shape.size(), 1);
  bias[1] = desc.outputs[0].shape[1];
  inputs.push_back(random_tensor(bias, -1, 1, 3));
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, bias));
  desc.constants.push_back(inputs.back());
  desc.tail.push_back({"add", 0, 0, static_cast<int>(inputs.size()) - 1});
  desc.tail.push_back({"relu"});
}

// An activation with the output's shape, in a layout with gaps.
void add_image_residual(OpDesc& desc, std::vector<Tensor>& inputs) {
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 4));
  desc.inputs.push_back(
      with_gaps(TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape), 3, 1));
  desc.constants.push_back({});
  desc.tail.push_back({"add", 0, 0, static_cast<int>(inputs.size()) - 1});
}

TEST(Convolution, Shapes) {
  EXPECT_EQ(
      plain_shape({"Convolution", {1, 3, 300, 300}, {32, 3, 7, 7}, "2,2", "3,3", "3,3", "1,1"}),
      (Shape{1, 32, 150, 150}));
  EXPECT_EQ(
      plain_shape(
          {"Convolution", {2, 3, 11, 10}, {4, 3, 3, 3}, "2,2", "0,0", "0,0", "1,1", "same_upper"}),
      (Shape{2, 4, 6, 5}));
  EXPECT_EQ(plain_shape(
                {"Convolution", {2, 3, 11, 10}, {4, 3, 3, 3}, "1,1", "9,9", "9,9", "2,2", "valid"}),
            (Shape{2, 4, 7, 6}));
  EXPECT_EQ(plain_shape({"Convolution", {1, 2, 9}, {4, 2, 3}, "2", "1", "0", "1"}),
            (Shape{1, 4, 4}));
  EXPECT_EQ(
      plain_shape({"GroupConvolution", {1, 6, 8, 8}, {3, 4, 2, 3, 3}, "1,1", "1,1", "1,1", "1,1"}),
      (Shape{1, 12, 8, 8}));
  EXPECT_EQ(
      plain_shape(
          {"Convolution", {1, 2, 4, 5, 6}, {3, 2, 2, 2, 2}, "1,1,2", "0,0,0", "0,0,0", "1,1,1"}),
      (Shape{1, 3, 3, 4, 3}));
}

TEST(Convolution, RefusesWhatCannotBe) {
  const auto message = [](const PlainCase& c) -> std::string {
    try {
      plain_shape(c);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_model);
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(says(message({"Convolution", {1, 3, 8, 8}, {4, 2, 3, 3}, "1,1", "0,0", "0,0", "1,1"}),
                   "the filter [4,2,3,3] takes 2 channels, the data [1,3,8,8] has 3"));  // channels
  EXPECT_TRUE(says(message({"Convolution", {1, 3, 8, 8}, {4, 3, 9, 9}, "1,1", "0,0", "0,0", "1,1"}),
                   "the kernel covers 9 positions, the padded input has 8"));  // kernel too large
  EXPECT_TRUE(says(message({"Convolution", {1, 3, 8, 8}, {4, 3, 3, 3}, "0,1", "0,0", "0,0", "1,1"}),
                   "attribute strides is out of range: 0"));  // stride 0
  EXPECT_TRUE(says(message({"Convolution", {1, 3, 8, 8}, {4, 3, 3, 3}, "1", "0,0", "0,0", "1,1"}),
                   "attribute strides has 1 numbers for 2 spatial dimensions"));  // too few strides
  EXPECT_TRUE(says(message({"Convolution", {1, 3, 8, 8}, {4, 3, 3}, "1,1", "0,0", "0,0", "1,1"}),
                   "the filter [4,3,3] does not fit the data [1,3,8,8]"));  // ranks
  EXPECT_TRUE(says(
      message({"Convolution", {1, 3, 8, 8}, {4, 3, 3, 3}, "1,1", "0,0", "0,0", "9000000000000,1"}),
      "attribute dilations is out of range: 9000000000000"));
  EXPECT_TRUE(says(
      message({"Convolution", {1, 3, 8, 8}, {4, 3, 3, 3}, "1,1", "0,0", "0,0", "1,1", "sideways"}),
      "unknown auto_pad \"sideways\""));
  EXPECT_TRUE(
      says(message({"GroupConvolution", {1, 6, 8, 8}, {4, 1, 2, 3, 3}, "1,1", "0,0", "0,0", "1,1"}),
           "the filter [4,1,2,3,3] takes 8 channels, the data [1,6,8,8] has 6"));  // groups
}

// The reference, on values that can be checked by hand.
TEST(Convolution, ReferenceByHand) {
  std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
      Tensor::of<float>(ElementType::f32, {1, 1, 2, 2}, {1, 10, 100, 1000})};
  const OpDesc desc = make_desc(
      "Convolution", 1,
      attributes(
          {{"strides", "2,1"}, {"pads_begin", "1,0"}, {"pads_end", "0,1"}, {"dilations", "1,1"}}),
      inputs, {false, true});
  // Rows start at -1 and 1; columns at 0, 1 and 2.
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(),
            (std::vector<float>{2100, 3200, 300, 8754, 9865, 906}));
}

// Kernels compute these sums as floats, by the operation's expansion.
TEST(Convolution, ReferenceOfIntegers) {
  std::vector<Tensor> inputs{Tensor::of<int>(ElementType::i32, {1, 1, 1, 3}, {-3, 200, 5}),
                             Tensor::of<int>(ElementType::i32, {1, 1, 1, 2}, {7, -100})};
  const OpDesc desc = make_desc(
      "Convolution", 1,
      attributes(
          {{"strides", "1,1"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}, {"dilations", "1,1"}}),
      inputs, {false, true});
  const Tensor sums = reference(desc, inputs)[0];
  EXPECT_EQ(sums.type(), ElementType::i32);
  EXPECT_EQ(sums.to_ints(), (std::vector<int64_t>{-20021, 900}));
}

TEST(Convolution, Pointwise) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {2, 20, 5, 7}, {37, 20, 1, 1}, "1,1", "0,0", "0,0", "1,1"}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 7, 16);
  add_bias_relu(desc, inputs);
  add_image_residual(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
}

// The residual is not one long row of pixels, so the kernel must compute its positions.
TEST(Convolution, PointwiseWithPositions) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {2, 8, 5, 3}, {16, 8, 1, 1}, "1,1", "0,0", "0,0", "1,1"}, inputs);
  inputs.push_back(random_tensor({2, 16, 1, 3}));
  desc.inputs.push_back(TensorDesc::channels_last(ElementType::f32, {2, 16, 1, 3}));
  desc.constants.push_back({});
  desc.tail.push_back({"multiply", 0, 0, 2});
  check_op(desc, inputs);
}

// The height is the only dimension along which pixels are stepped through.
TEST(Convolution, PointwiseOfOneColumn) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 8, 19, 1}, {16, 8, 1, 1}, "1,1", "0,0", "0,0", "1,1"}, inputs);
  add_image_residual(desc, inputs);
  check_op(desc, inputs);
}

TEST(Convolution, SmallKernelWithBorders) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {2, 9, 11, 13}, {20, 9, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
}

TEST(Convolution, StridedViews) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 6, 12, 17}, {24, 6, 3, 5}, "2,3", "1,0", "0,2", "2,1"}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 4, 8);
  add_image_residual(desc, inputs);
  check_op(desc, inputs);
}

TEST(Convolution, FirstLayer) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 3, 21, 23}, {16, 3, 7, 7}, "2,2", "3,3", "3,3", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  check_op(desc, inputs);
}

TEST(Convolution, SameLowerAndNegativePads) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 5, 9, 10}, {8, 5, 4, 4}, "2,2", "0,0", "0,0", "1,1", "same_lower"},
      inputs);
  check_op(desc, inputs);
  desc = describe_plain({"Convolution", {1, 5, 9, 10}, {8, 5, 3, 3}, "1,1", "-1,2", "1,-2", "1,1"},
                        inputs);
  check_op(desc, inputs);
}

// On a CPU, the loop over blocks of channels is the inner one if the weights stay in the cache (the
// first case); otherwise the loop over runs of pixels is.
TEST(Convolution, ManyPixelsAndBlocks) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 8, 61, 70}, {72, 8, 1, 1}, "1,1", "0,0", "0,0", "1,1"}, inputs);
  add_image_residual(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
  desc = describe_plain(
      {"Convolution", {1, 64, 22, 30}, {72, 64, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
}

// The kernel is larger than the input: no tile lies entirely inside.
TEST(Convolution, KernelLargerThanInput) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 4, 3, 2}, {8, 4, 5, 5}, "1,1", "2,2", "2,2", "1,1"}, inputs);
  check_op(desc, inputs);
}

TEST(Convolution, OneAndThreeDimensions) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain({"Convolution", {2, 5, 17}, {6, 5, 3}, "2", "1", "1", "1"}, inputs);
  add_bias_relu(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
  desc =
      describe_plain({"GroupConvolution", {1, 20, 19}, {20, 1, 1, 5}, "1", "4", "4", "2"}, inputs);
  add_bias_relu(desc, inputs);
  EXPECT_GE(check_op(desc, inputs, {}, nullptr, "conv_depthwise"), 1u);
  desc = describe_plain(
      {"Convolution", {2, 5, 4, 6, 7}, {16, 5, 2, 3, 3}, "1,2,1", "0,1,1", "1,1,1", "1,1,1"},
      inputs);
  add_bias_relu(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
}

TEST(Convolution, WeightsThatAreAnInput) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {1, 5, 6, 7}, {6, 5, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  desc.constants[1] = {};
  desc.inputs[1] = TensorDesc::channels_last(ElementType::f32, inputs[1].shape());
  check_op(desc, inputs);
}

TEST(Convolution, HalfStorage) {
  const DeviceTraits gpu = gpu_traits();
  for (int64_t channels : {9, 16}) {  // groups of four channels, aligned or not
    std::vector<Tensor> inputs;
    OpDesc desc = describe_plain(
        {"Convolution", {1, channels, 7, 9}, {20, channels, 3, 3}, "1,1", "1,1", "1,1", "1,1"},
        inputs);
    desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
    inputs[1] = inputs[1].convert(ElementType::f16).convert(ElementType::f32);
    desc.constants[1] = inputs[1];
    check_op(desc, inputs, {2e-3, 2e-3}, channels == 16 ? &gpu : nullptr);
  }
}

// Work-groups with many lanes, one tile each.
TEST(Convolution, TilesForGpus) {
  const DeviceTraits gpu = gpu_traits();
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"Convolution", {2, 9, 7, 9}, {37, 9, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  check_op(desc, inputs, {}, &gpu);
  desc = describe_plain({"Convolution", {1, 22, 5, 5}, {20, 22, 1, 1}, "1,1", "0,0", "0,0", "1,1"},
                        inputs);
  add_image_residual(desc, inputs);
  check_op(desc, inputs, {}, &gpu);
  desc = describe_plain(
      {"GroupConvolution", {2, 21, 9, 11}, {21, 1, 1, 3, 3}, "2,2", "1,1", "1,1", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  check_op(desc, inputs, {}, &gpu);
}

TEST(GroupConvolution, Depthwise) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"GroupConvolution", {2, 21, 9, 11}, {21, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 3, 2);
  add_bias_relu(desc, inputs);
  add_image_residual(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
}

TEST(GroupConvolution, DepthwiseOddCases) {
  std::vector<Tensor> inputs;
  for (const PlainCase& c :
       {PlainCase{
            "GroupConvolution", {1, 16, 12, 13}, {16, 1, 1, 5, 5}, "2,2", "2,2", "2,2", "1,1"},
        PlainCase{"GroupConvolution", {1, 8, 10, 9}, {8, 1, 1, 3, 4}, "1,3", "2,4", "0,1", "2,3"},
        PlainCase{"GroupConvolution", {1, 3, 4, 2}, {3, 1, 1, 5, 5}, "1,1", "4,4", "4,4", "1,1"}}) {
    OpDesc desc = describe_plain(c, inputs);
    EXPECT_GE(check_op(desc, inputs), 2u);
  }
}

TEST(GroupConvolution, Groups) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_plain(
      {"GroupConvolution", {2, 12, 7, 8}, {2, 12, 6, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  add_bias_relu(desc, inputs);
  check_op(desc, inputs);
  // Vectors would straddle the groups, so only the general family accepts the tail.
  desc = describe_plain(
      {"GroupConvolution", {1, 6, 7, 8}, {2, 7, 3, 1, 1}, "1,1", "0,0", "0,0", "1,1"}, inputs);
  check_op(desc, inputs);
  add_bias_relu(desc, inputs);
  check_op(desc, inputs);
  desc = describe_plain(
      {"GroupConvolution", {1, 3, 7, 8}, {3, 2, 1, 3, 3}, "1,1", "1,1", "1,1", "1,1"}, inputs);
  check_op(desc, inputs);
}

}  // namespace
}  // namespace clinfer::test
