// DeformableConvolution: refusals, values that follow from the definition, and the family against
// the reference.
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

struct DeformableCase {
  Shape data, filter;
  const char *strides, *pads, *dilations, *groups, *deformable;
  bool border = false, mask = false;
  float reach = 0.9f;
};

OpDesc describe_deformable(const DeformableCase& c, std::vector<Tensor>& inputs, int opset = 8) {
  const std::vector<Tensor> plain{
      random_tensor(c.data), random_tensor({c.filter[0], c.data[1], c.filter[2], c.filter[3]})};
  const Attributes geometry = attributes({{"strides", c.strides},
                                          {"pads_begin", c.pads},
                                          {"pads_end", c.pads},
                                          {"dilations", c.dilations}});
  const Shape out = make_desc("Convolution", 1, geometry, plain, {false, true}).outputs[0].shape;
  const int64_t taps = std::stoi(c.deformable) * c.filter[2] * c.filter[3];
  inputs = {random_tensor(c.data, -1, 1, 1),
            random_tensor({out[0], 2 * taps, out[2], out[3]}, -c.reach, c.reach, 2),
            random_tensor(c.filter, -1, 1, 3)};
  if (c.mask) inputs.push_back(random_tensor({out[0], taps, out[2], out[3]}, 0, 1, 4));
  Attributes a = geometry;
  a.set("group", c.groups);
  a.set("deformable_group", c.deformable);
  a.set("bilinear_interpolation_pad", c.border ? "true" : "false");
  return make_desc("DeformableConvolution", opset, a, inputs, {false, false, true, false});
}

TEST(DeformableConvolution, WithoutOffsetsIsAConvolution) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe_deformable(
      {{2, 4, 6, 5}, {6, 2, 3, 3}, "2,1", "1,1", "1,1", "2", "2", false, false, 0}, inputs, 1);
  const Tensor grouped = inputs[2].reshaped({2, 3, 2, 3, 3});
  const std::vector<Tensor> plain{inputs[0], grouped};
  const OpDesc same =
      make_desc("GroupConvolution", 1,
                attributes({{"strides", "2,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}), plain,
                {false, true});
  const std::vector<float> got = reference(desc, inputs)[0].to_floats(),
                           want = reference(same, plain)[0].to_floats();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
}

// One pixel of value 8, and a 1x1 kernel whose sample is moved by (y, x).
float sampled(float y, float x, bool border, float mask = 1) {
  std::vector<Tensor> inputs{floats({1, 1, 1, 1}, {8}), floats({1, 2, 1, 1}, {y, x}),
                             floats({1, 1, 1, 1}, {1}), floats({1, 1, 1, 1}, {mask})};
  const OpDesc desc = make_desc(
      "DeformableConvolution", 8,
      attributes({{"strides", "1,1"}, {"bilinear_interpolation_pad", border ? "true" : "false"}}),
      inputs, {false, false, true, false});
  return reference(desc, inputs)[0].to_floats()[0];
}

TEST(DeformableConvolution, SamplesAtTheBorder) {
  EXPECT_EQ(sampled(0.5f, 0.25f, false), 8);  // clamped to the edge
  EXPECT_EQ(sampled(0.5f, 0.25f, true), 3);   // zeros outside
  EXPECT_EQ(sampled(-0.5f, 0, false), 0);
  EXPECT_EQ(sampled(-0.5f, 0, true), 4);
  EXPECT_EQ(sampled(-1, 0, true), 0);
  EXPECT_EQ(sampled(0, 1, true), 0);
  EXPECT_EQ(sampled(0, 0, true, 0.5f), 4);
}

TEST(DeformableConvolution, RefusesWhatCannotBe) {
  std::vector<Tensor> inputs;
  EXPECT_THROW(
      describe_deformable({{1, 4, 6, 6}, {5, 3, 3, 3}, "1,1", "1,1", "1,1", "1", "1"}, inputs),
      Error);
  EXPECT_THROW(
      describe_deformable({{1, 4, 6, 6}, {5, 4, 3, 3}, "1,1", "1,1", "1,1", "1", "3"}, inputs),
      Error);
  EXPECT_THROW(
      describe_deformable({{1, 4, 6, 6}, {5, 4, 3, 3}, "1,1", "1,1", "1,1", "0", "1"}, inputs),
      Error);
  describe_deformable({{1, 4, 6, 6}, {5, 4, 3, 3}, "1,1", "1,1", "1,1", "1", "1"}, inputs);
  inputs[1] = random_tensor({1, 18, 6, 5});
  EXPECT_TRUE(
      says(error_of("DeformableConvolution", 1,
                    attributes({{"strides", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}),
                    inputs),
           "the offsets have the shape [1,18,6,5], expected [1,18,6,6]"));
}

TEST(DeformableConvolution, Kernel) {
  std::vector<Tensor> inputs;
  for (const DeformableCase& c :
       {DeformableCase{{1, 4, 6, 6}, {5, 4, 3, 3}, "1,1", "1,1", "1,1", "1", "1"},
        DeformableCase{{2, 6, 7, 5}, {8, 3, 3, 3}, "2,1", "1,1", "1,1", "2", "3", true, true, 2.5f},
        DeformableCase{{1, 2, 8, 8}, {20, 2, 3, 3}, "1,1", "2,2", "2,2", "1", "2", false, true}}) {
    OpDesc desc = describe_deformable(c, inputs);
    check_op(desc, inputs);
  }
  OpDesc desc = describe_deformable(
      {{1, 4, 6, 6}, {8, 4, 3, 3}, "1,1", "1,1", "1,1", "1", "2", true, true}, inputs);
  desc.tail.push_back({"relu"});
  for (size_t i : {0, 1, 3}) desc.inputs[i] = with_gaps(desc.inputs[i]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 3, 1);
  check_op(desc, inputs);
}

}  // namespace
}  // namespace clinfer::test
