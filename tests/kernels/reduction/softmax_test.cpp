// SoftMax and LogSoftmax: values computed by hand, and the family along and across the axis with
// many layouts.
#include <cmath>

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

OpDesc describe_softmax(const char* type, const Shape& shape, const char* axis,
                        std::vector<Tensor>& inputs) {
  inputs = {random_tensor(shape, -9, 9, 1)};
  return make_desc(type, 8, attributes({{"axis", axis}}), inputs, {});
}

// Runs on the device with its own traits, and with points planned for a GPU.
TEST(SoftMax, ReferenceByHand) {
  const float l2 = std::log(2.f), l3 = std::log(3.f);
  const std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {2, 3}, {0, 0, l2, 100, 100 + l3, 100})};
  OpDesc desc = make_desc("SoftMax", 1, attributes({{"axis", "1"}}), inputs, {});
  std::vector<float> got = reference(desc, inputs)[0].to_floats();
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(got[i], (std::vector<float>{0.25f, 0.25f, 0.5f, 0.2f, 0.6f, 0.2f})[i], 1e-6) << i;
  desc = make_desc("LogSoftmax", 5, attributes({{"axis", "-1"}}), inputs, {});
  got = reference(desc, inputs)[0].to_floats();
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(got[i], std::log((std::vector<float>{0.25f, 0.25f, 0.5f, 0.2f, 0.6f, 0.2f})[i]),
                1e-5)
        << i;
  desc = make_desc("SoftMax", 8, attributes({{"axis", "-2"}}), inputs, {});
  EXPECT_NEAR(reference(desc, inputs)[0].to_floats()[3], 1, 1e-6);
}

TEST(SoftMax, TakesFloatsOnly) {
  const std::vector<Tensor> bytes{test::random_ints(ElementType::u8, {2, 3}, 0, 9)};
  EXPECT_THROW(make_desc("SoftMax", 8, attributes({{"axis", "1"}}), bytes, {}), Error);
  // An operation that does not check its types must not access memory past the elements.
  EXPECT_THROW(bytes[0].data<float>(), Error);
  EXPECT_NO_THROW(bytes[0].data<uint8_t>());
}

TEST(SoftMax, RefusesAxesThatAreNotThere) {
  const std::vector<Tensor> inputs{random_tensor({2, 3})};
  for (const char* axis : {"2", "-3", "all"})
    EXPECT_THROW(make_desc("SoftMax", 8, attributes({{"axis", axis}}), inputs, {}), Error) << axis;
}

// Classes of boxes: many short rows.
TEST(SoftMax, ShortRows) {
  std::vector<Tensor> inputs;
  check_both(describe_softmax("SoftMax", {1, 333, 3}, "2", inputs), inputs);
}

// Attention, as views; 91 classes.
TEST(SoftMax, LongRows) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_softmax("SoftMax", {2, 3, 7, 91}, "3", inputs);
  desc.inputs[0] = with_gaps(TensorDesc::row_major(ElementType::f32, inputs[0].shape()), 6, 5);
  desc.outputs[0] = with_gaps(TensorDesc::row_major(ElementType::f32, inputs[0].shape()), 3, 1);
  check_both(desc, inputs);
  check_both(describe_softmax("SoftMax", {1, 1000}, "1", inputs), inputs);
  // Very large values must not overflow.
  inputs[0] = random_tensor({1, 1000}, -3e4f, 3e4f);
  check_op(describe_softmax("SoftMax", {1, 1000}, "1", inputs), inputs);
}

// Vectors that lie at multiples of their size, and rows that are one element off.
TEST(SoftMax, AlignedRows) {
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    for (const int64_t offset : {0, 1}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe_softmax("SoftMax", {3, 5, 16}, "2", inputs);
      desc.inputs[0].type = desc.outputs[0].type = type;
      desc.inputs[0].strides = {160, 32, 1};
      desc.inputs[0].offset = offset;
      check_both(desc, inputs, type == ElementType::f16 ? Tolerance{1e-3, 1e-3} : Tolerance{});
    }
  }
}

// Segmentation: channels innermost on one side, in the middle on the other.
TEST(SoftMax, Channels) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_softmax("SoftMax", {2, 21, 5, 6}, "1", inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  check_both(desc, inputs);
  desc.outputs[0] = TensorDesc::row_major(ElementType::f32, inputs[0].shape());
  check_both(desc, inputs);
  desc.inputs[0] = desc.outputs[0];
  check_both(desc, inputs);
}

TEST(SoftMax, OtherAxes) {
  std::vector<Tensor> inputs;
  check_op(describe_softmax("SoftMax", {2, 5, 6, 7}, "2", inputs), inputs);
  check_op(describe_softmax("SoftMax", {3, 5, 2, 3, 4}, "-5", inputs), inputs);
  check_op(describe_softmax("SoftMax", {7, 1}, "1", inputs), inputs);
}

TEST(SoftMax, HalfStorage) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_softmax("SoftMax", {1, 9, 37}, "-1", inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_both(desc, inputs, {1e-3, 1e-3});
}

// Scores that are sorted later stay f32, whatever type the operation reads.
TEST(SoftMax, OneSideHalf) {
  std::vector<Tensor> inputs;
  for (const char* axis : {"1", "2"}) {
    OpDesc desc = describe_softmax("SoftMax", {2, 9, 37}, axis, inputs);
    desc.inputs[0].type = ElementType::f16;
    check_both(desc, inputs, {1e-3, 1e-3});
    std::swap(desc.inputs[0].type, desc.outputs[0].type);
    check_both(desc, inputs, {1e-3, 1e-3});
  }
}

TEST(LogSoftmax, Families) {
  std::vector<Tensor> inputs;
  check_both(describe_softmax("LogSoftmax", {5, 37}, "-1", inputs), inputs);
  check_op(describe_softmax("LogSoftmax", {2, 5, 3, 4}, "1", inputs), inputs);
}

OpDesc describe_mean(const Shape& shape, size_t axis, std::vector<Tensor>& inputs) {
  inputs = {random_tensor(shape, -9, 9, 1), random_tensor({shape[axis]}, -1, 15, 2)};
  return make_desc("SoftMaxMean", 1, attributes({{"axis", std::to_string(axis).c_str()}}), inputs,
                   {false, true});
}

TEST(SoftMaxMean, ReferenceByHand) {
  const float l2 = std::log(2.f), l3 = std::log(3.f);
  const std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {2, 3}, {0, 0, l2, 100, 100 + l3, 100}),
      Tensor::of<float>(ElementType::f32, {3}, {4, 8, 1})};
  const OpDesc desc =
      make_desc("SoftMaxMean", 1, attributes({{"axis", "1"}}), inputs, {false, true});
  const Tensor got = reference(desc, inputs)[0];
  EXPECT_EQ(got.shape(), (Shape{2, 1}));
  EXPECT_NEAR(got.to_floats()[0], 0.25 * 4 + 0.25 * 8 + 0.5, 1e-6);
  EXPECT_NEAR(got.to_floats()[1], 0.2 * 4 + 0.6 * 8 + 0.2, 1e-5);
}

TEST(SoftMaxMean, RefusesNumbersThatDoNotFit) {
  const std::vector<Tensor> inputs{random_tensor({2, 3}), random_tensor({2})};
  EXPECT_THROW(make_desc("SoftMaxMean", 1, attributes({{"axis", "1"}}), inputs, {false, true}),
               Error);
}

// YOLOv8's distances, as a view of the maps of its heads: 16 bins of 4 sides, then the scores.
TEST(SoftMaxMean, BinsOfHeads) {
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_mean({2, 16, 4, 37}, 1, inputs);
    desc.inputs[0].type = type;
    desc.inputs[0].strides = {37 * 144, 1, 16, 144};
    desc.outputs[0].type = type;
    check_both(desc, inputs, type == ElementType::f16 ? Tolerance{2e-3, 4e-3} : Tolerance{});
  }
}

TEST(SoftMaxMean, OtherAxesAndSizes) {
  std::vector<Tensor> inputs;
  for (const auto& [shape, axis] : {std::pair<Shape, size_t>{{5, 37}, 1},
                                    {{2, 21, 5, 6}, 1},
                                    {{3, 7, 19}, 1},
                                    {{2, 3, 4, 8}, 3},
                                    {{7, 1}, 1}})
    check_both(describe_mean(shape, axis, inputs), inputs);
}

}  // namespace
}  // namespace clinfer::test
