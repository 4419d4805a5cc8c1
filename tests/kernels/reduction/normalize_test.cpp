// MVN, NormalizeL2, GRN, GroupNormalization and LRN: values checked by hand, and the families on
// many layouts.
#include <cmath>

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

Tensor axes_of(const std::vector<int>& axes) {
  return Tensor::of<int>(ElementType::i64, {static_cast<int64_t>(axes.size())}, axes);
}

std::vector<float> normalized(const char* type, int opset, const Attributes& attributes,
                              const std::vector<Tensor>& inputs) {
  std::vector<bool> constant(inputs.size(), true);
  constant[0] = false;
  return reference(make_desc(type, opset, attributes, inputs, constant), inputs)[0].to_floats();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

OpDesc describe_mvn(const Shape& shape, const std::vector<int>& axes, std::vector<Tensor>& inputs) {
  inputs = {random_tensor(shape, -2, 5), axes_of(axes)};
  return make_desc(
      "MVN", 6,
      attributes({{"eps", "1e-5"}, {"normalize_variance", "true"}, {"eps_mode", "INSIDE_SQRT"}}),
      inputs, {false, true});
}

void add_channel_tail(OpDesc& desc, std::vector<Tensor>& inputs, size_t dim) {
  for (const char* function : {"multiply", "add"}) {
    Shape shape(desc.outputs[0].shape.size(), 1);
    shape[dim] = desc.outputs[0].shape[dim];
    inputs.push_back(random_tensor(shape, -1, 1, static_cast<unsigned>(inputs.size())));
    desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, shape));
    desc.constants.push_back(inputs.back());
    desc.tail.push_back({function, 0, 0, static_cast<int>(inputs.size()) - 1});
  }
}

TEST(Mvn, ReferenceByHand) {
  const Tensor data = Tensor::of<float>(ElementType::f32, {1, 2, 1, 2}, {1, 3, 10, 20});
  const auto old = [&](const char* across, const char* variance, const char* eps) {
    return normalized(
        "MVN", 2,
        attributes({{"across_channels", across}, {"normalize_variance", variance}, {"eps", eps}}),
        {data});
  };
  expect_near(old("false", "false", "0"), {-1, 1, -5, 5});
  expect_near(old("true", "false", "0"), {-7.5f, -5.5f, 1.5f, 11.5f});
  expect_near(old("false", "true", "3"), {-0.5f, 0.5f, -5 / std::sqrt(28.f), 5 / std::sqrt(28.f)});
  const auto newer = [&](const char* mode) {
    return normalized(
        "MVN", 6, attributes({{"normalize_variance", "true"}, {"eps", "3"}, {"eps_mode", mode}}),
        {data, axes_of({-1})});
  };
  expect_near(newer("INSIDE_SQRT"), {-0.5f, 0.5f, -5 / std::sqrt(28.f), 5 / std::sqrt(28.f)});
  expect_near(newer("OUTSIDE_SQRT"), {-0.25f, 0.25f, -0.625f, 0.625f});
}

TEST(NormalizeL2, ReferenceByHand) {
  const Tensor data = Tensor::of<float>(ElementType::f32, {1, 2, 2}, {3, 0, 4, 1});
  const auto with = [&](const char* mode, const char* eps, const std::vector<int>& axes) {
    return normalized("NormalizeL2", 1, attributes({{"eps", eps}, {"eps_mode", mode}}),
                      {data, axes_of(axes)});
  };
  expect_near(with("add", "0", {1}), {0.6f, 0, 0.8f, 1});
  expect_near(with("add", "11", {1}), {0.5f, 0, 4 / 6.f, 1 / std::sqrt(12.f)});
  expect_near(with("max", "4", {1}), {0.6f, 0, 0.8f, 0.5f});
  expect_near(with("add", "7", {}), {0.75f, 0, 4 / std::sqrt(23.f), 1 / std::sqrt(8.f)});
}

TEST(Normalizations, OthersByHand) {
  const Tensor data = Tensor::of<float>(ElementType::f32, {1, 2, 1, 2}, {3, 0, 4, 1});
  expect_near(normalized("GRN", 1, attributes({{"bias", "11"}}), {data}),
              {0.5f, 0, 4 / 6.f, 1 / std::sqrt(12.f)});
  expect_near(
      normalized("GroupNormalization", 12, attributes({{"num_groups", "2"}, {"epsilon", "0"}}),
                 {data, Tensor::of<float>(ElementType::f32, {2}, {1, 2}),
                  Tensor::of<float>(ElementType::f32, {2}, {0, 10})}),
      {1, -1, 12, 8});
  // The squares are 9 0 16 1; across the channels each sum contains both.
  expect_near(
      normalized("LRN", 1,
                 attributes({{"alpha", "3"}, {"beta", "0.5"}, {"bias", "11"}, {"size", "3"}}),
                 {data, axes_of({1})}),
      {0.5f, 0, 4 / 6.f, 1 / std::sqrt(12.f)});
}

TEST(Normalizations, RefuseWhatCannotBe) {
  const Tensor data = random_tensor({1, 6, 2, 2}), six = random_tensor({6}),
               five = random_tensor({5});
  EXPECT_THROW(normalized("GroupNormalization", 12,
                          attributes({{"num_groups", "4"}, {"epsilon", "0"}}), {data, six, six}),
               Error);
  EXPECT_THROW(normalized("GroupNormalization", 12,
                          attributes({{"num_groups", "0"}, {"epsilon", "0"}}), {data, six, six}),
               Error);
  EXPECT_THROW(normalized("GroupNormalization", 12,
                          attributes({{"num_groups", "2"}, {"epsilon", "0"}}), {data, six, five}),
               Error);
  EXPECT_THROW(normalized("NormalizeL2", 1, attributes({{"eps", "-1"}, {"eps_mode", "add"}}),
                          {data, axes_of({1})}),
               Error);
  EXPECT_THROW(normalized("NormalizeL2", 1, attributes({{"eps", "1"}, {"eps_mode", "mul"}}),
                          {data, axes_of({1})}),
               Error);
  EXPECT_THROW(normalized("NormalizeL2", 1, attributes({{"eps", "1"}, {"eps_mode", "add"}}),
                          {data, axes_of({4})}),
               Error);
  EXPECT_THROW(normalized("LRN", 1,
                          attributes({{"alpha", "1"}, {"beta", "1"}, {"bias", "1"}, {"size", "0"}}),
                          {data, axes_of({1})}),
               Error);
}

// Layer normalisation with the following operations fused.
TEST(Mvn, LastAxis) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_mvn({2, 7, 51}, {-1}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  add_channel_tail(desc, inputs, 2);
  check_both(desc, inputs);
}

// Rows that stay in registers: whole and partial vectors of all work-items, rows that fill no
// work-group, what follows in the tail.
TEST(Mvn, DenseRowsOnNvidia) {
  DeviceTraits nvidia = gpu_traits();
  nvidia.vendor = Vendor::nvidia;
  for (const int64_t size : {16, 96, 770, 2048})
    for (const ElementType type : {ElementType::f16, ElementType::f32}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe_mvn({2, 5, size}, {-1}, inputs);
      desc.inputs[0].type = desc.outputs[0].type = type;
      const Tolerance tolerance = type == ElementType::f16 ? Tolerance{2e-3, 2e-3} : Tolerance{};
      check_op(desc, inputs, tolerance, &nvidia, "normalize_kept");
      add_channel_tail(desc, inputs, 2);
      check_op(desc, inputs, tolerance, &nvidia, "normalize_kept");
      desc.inputs[0] = with_gaps(desc.inputs[0], 16, 8);
      desc.outputs[0] = with_gaps(desc.outputs[0], 8, 16);
      check_op(desc, inputs, tolerance, &nvidia, "normalize_kept");
    }
  std::vector<Tensor> inputs{random_tensor({3, 40}), axes_of({-1})};
  for (const char* mode : {"max", "add"})
    check_op(make_desc("NormalizeL2", 1, attributes({{"eps", "9"}, {"eps_mode", mode}}), inputs,
                       {false, true}),
             inputs, {}, &nvidia, "normalize_kept");
  const auto& families = find_op("MVN", 6)->families;
  const KernelFamily& family = *families.at(0);
  EXPECT_EQ(family.reject(describe_mvn({2, 7, 51}, {-1}, inputs), nvidia),
            "rows are not dense and aligned, or are too long");
  EXPECT_EQ(family.reject(describe_mvn({2, 8, 7, 48}, {2}, inputs), nvidia),
            "rows are several loops");
  EXPECT_EQ(family.reject(describe_mvn({2, 7, 48}, {-1}, inputs), gpu_traits()),
            "was measured on NVIDIA's GPUs only");
}

TEST(Mvn, Images) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_mvn({2, 21, 5, 7}, {2, 3}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 7, 16);
  add_channel_tail(desc, inputs, 1);
  check_both(desc, inputs);
  check_op(describe_mvn({1, 21, 5, 7}, {1, 2, 3}, inputs), inputs);
  check_op(describe_mvn({1, 3, 2, 3, 4}, {2, 3, 4}, inputs), inputs);
  desc = describe_mvn({1, 6, 5, 7}, {2}, inputs);
  desc.inputs[0] = TensorDesc::row_major(ElementType::f32, inputs[0].shape());
  check_op(desc, inputs);
}

// Quantised results, by rows of images and by rows that stay in registers; large work-groups, which
// NVIDIA's GPUs take where rows are few.
TEST(Mvn, MakesBytes) {
  DeviceTraits nvidia = gpu_traits();
  nvidia.vendor = Vendor::nvidia;
  nvidia.max_work_group = 1024;
  for (const bool image : {true, false}) {
    std::vector<Tensor> inputs;
    OpDesc desc = image ? describe_mvn({1, 8, 37, 61}, {2, 3}, inputs)
                        : describe_mvn({2, 5, 96}, {-1}, inputs);
    if (!image) desc.inputs[0].type = ElementType::f16;
    add_channel_tail(desc, inputs, image ? 1 : 2);
    desc.tail.push_back({"to_byte", -100, 120});
    desc.outputs[0].type = ElementType::u8;
    check_op(desc, inputs, {0.004, 0}, &nvidia, image ? "normalize" : "normalize_kept");
    if (image) check_both(desc, inputs, {0.004, 0});
  }
}

TEST(NormalizeL2, Channels) {
  std::vector<Tensor> inputs{random_tensor({2, 37, 3, 5}), axes_of({1})};
  OpDesc desc = make_desc("NormalizeL2", 1, attributes({{"eps", "1e-9"}, {"eps_mode", "add"}}),
                          inputs, {false, true});
  check_both(desc, inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, inputs, {1e-3, 1e-3});
  inputs = {random_tensor({3, 40}), axes_of({-1})};
  check_op(make_desc("NormalizeL2", 1, attributes({{"eps", "9"}, {"eps_mode", "max"}}), inputs,
                     {false, true}),
           inputs);
}

TEST(GroupNormalization, Layouts) {
  for (const auto& [shape, groups] : {std::pair{Shape{2, 12, 5, 7}, "3"},
                                      {{2, 5, 3, 4}, "5"},
                                      {{1, 8, 7}, "4"},
                                      {{2, 10, 2, 3, 4}, "2"}}) {
    const std::vector<Tensor> inputs{random_tensor(shape, -1, 3),
                                     random_tensor({shape[1]}, -1, 1, 2),
                                     random_tensor({shape[1]}, -1, 1, 3)};
    OpDesc desc = make_desc("GroupNormalization", 12,
                            attributes({{"num_groups", groups}, {"epsilon", "1e-5"}}), inputs,
                            {false, true, true});
    check_op(desc, inputs);
  }
}

TEST(Lrn, Families) {
  std::vector<Tensor> inputs{random_tensor({2, 21, 5, 6}, -3, 3), axes_of({1})};
  const Attributes values =
      attributes({{"alpha", "0.5"}, {"beta", "0.75"}, {"bias", "2"}, {"size", "5"}});
  check_both(make_desc("LRN", 1, values, inputs, {false, true}), inputs);
  inputs[1] = axes_of({2, 3});
  OpDesc desc = make_desc(
      "LRN", 1, attributes({{"alpha", "0.5"}, {"beta", "0.6"}, {"bias", "2"}, {"size", "3"}}),
      inputs, {false, true});
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  check_op(desc, inputs);
}

}  // namespace
}  // namespace clinfer::test
