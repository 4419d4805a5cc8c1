// Interpolate: values of every mode computed by hand, and both families against the reference.
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

struct Style {
  const char* mode;
  const char* coordinates = "half_pixel";
  const char* nearest = "round_prefer_floor";
  const char* antialias = "false";
};

OpDesc describe_interpolate(const Style& style, const Tensor& data, const std::vector<int>& axes,
                            const std::vector<int>& sizes, std::vector<Tensor>& inputs,
                            Attributes more = {}) {
  const int64_t n = static_cast<int64_t>(axes.size());
  inputs = {data, Tensor::of<int>(ElementType::i64, {n}, sizes),
            Tensor::of<int>(ElementType::i64, {n}, axes)};
  Attributes all = attributes({{"mode", style.mode},
                               {"coordinate_transformation_mode", style.coordinates},
                               {"nearest_mode", style.nearest},
                               {"antialias", style.antialias},
                               {"shape_calculation_mode", "sizes"}});
  for (const auto& [name, value] : more.all()) all.set(name, value);
  return make_desc("Interpolate", 11, all, inputs, {false, true, true});
}

std::vector<float> row(const Style& style, const std::vector<float>& values, int size,
                       Attributes more = {}) {
  std::vector<Tensor> inputs;
  const Tensor data =
      Tensor::of<float>(ElementType::f32, {1, 1, static_cast<int64_t>(values.size())}, values);
  return reference(describe_interpolate(style, data, {2}, {size}, inputs, std::move(more)),
                   inputs)[0]
      .to_floats();
}

void expect_row(const Style& style, const std::vector<float>& values,
                const std::vector<float>& want, Attributes more = {}) {
  const std::vector<float> got = row(style, values, static_cast<int>(want.size()), std::move(more));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5) << style.mode << " " << style.coordinates << " at " << i;
}

TEST(Interpolate, NearestByHand) {
  const std::vector<float> x{1, 2, 3, 4};
  expect_row({"nearest", "asymmetric", "floor"}, x, {1, 1, 2, 2, 3, 3, 4, 4});
  expect_row({"nearest", "asymmetric", "ceil"}, x, {1, 2, 2, 3, 3, 4, 4, 4});
  expect_row({"nearest", "asymmetric", "round_prefer_floor"}, x, {1, 1, 2, 2, 3, 3, 4, 4});
  expect_row({"nearest", "asymmetric", "round_prefer_ceil"}, x, {1, 2, 2, 3, 3, 4, 4, 4});
  expect_row({"nearest", "asymmetric", "simple"}, x, {1, 1, 2, 2, 3, 3, 4, 4});
  expect_row({"nearest", "asymmetric", "simple"}, x, {1, 3, 4});  // ceil of 0, 1.33 and 2.67
  expect_row({"nearest", "align_corners", "round_prefer_floor"}, x, {1, 4});
  expect_row({"nearest", "tf_half_pixel_for_nn", "floor"}, x, {2, 4});
  expect_row({"nearest", "half_pixel", "round_prefer_floor"}, x, {1, 3});  // 0.5 and 2.5
}

TEST(Interpolate, LinearByHand) {
  const std::vector<float> x{0, 4};
  expect_row({"linear_onnx"}, x, {0, 1, 3, 4});
  expect_row({"linear"}, x, {0, 1, 3, 4});
  expect_row({"linear", "align_corners"}, x, {0, 1, 2, 3, 4});
  expect_row({"linear", "asymmetric"}, x, {0, 2, 4, 4});
  expect_row({"linear_onnx", "pytorch_half_pixel"}, {5, 6, 7}, {5});
  expect_row({"linear_onnx", "half_pixel"}, {5, 6, 7}, {6});
}

TEST(Interpolate, FirstVersionByHand) {
  const auto first = [](const char* mode, const char* axes, const Tensor& data,
                        const Tensor& size) {
    return run("Interpolate", 1,
               attributes({{"mode", mode}, {"axes", axes}, {"align_corners", "false"}}),
               {data, size})[0]
        .to_floats();
  };
  // Down to 3 of 5: positions 0, 1.67 and 3.33 are rounded up.
  EXPECT_EQ(first("nearest", "2", counted({1, 1, 5}), ints({3})), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(first("linear", "2,3", counted({1, 1, 1, 2}), ints({1, 4})),
            (std::vector<float>{0, 0.5f, 1, 1}));
  EXPECT_EQ(first("linear", "2,3,4", counted({1, 1, 1, 1, 2}), ints({1, 1, 4})),
            (std::vector<float>{0, 0.25f, 0.75f, 1}));
}

TEST(Interpolate, AntialiasByHand) {
  // Scale 1/2: triangles over four positions on each side, weights 1 - |x| / 2 at 0.5 and 2.5.
  expect_row(
      {"linear", "half_pixel", "floor", "true"}, {0, 1, 2, 3},
      {(0.75f * 0 + 0.75f * 1 + 0.25f * 2) / 1.75f, (0.25f * 1 + 0.75f * 2 + 0.75f * 3) / 1.75f});
  expect_row(
      {"bilinear_pillow"}, {0, 1, 2, 3},
      {(0.75f * 0 + 0.75f * 1 + 0.25f * 2) / 1.75f, (0.25f * 1 + 0.75f * 2 + 0.75f * 3) / 1.75f});
}

TEST(Interpolate, CubicByHand) {
  // Coefficient -0.5 reproduces straight lines away from the ends.
  const Attributes catmull_rom = attributes({{"cube_coeff", "-0.5"}});
  const std::vector<float> got = row({"cubic", "asymmetric"}, {0, 1, 2, 3, 4, 5}, 12, catmull_rom);
  for (size_t i = 2; i < 9; ++i) EXPECT_NEAR(got[i], static_cast<float>(i) / 2, 1e-5) << i;
  // Coefficient -0.75 at the middle: weights -0.09375 and 0.59375; the ends repeat.
  EXPECT_NEAR(row({"cubic", "asymmetric"}, {0, 0, 1, 0}, 8)[3], 0.59375f, 1e-6);
  EXPECT_NEAR(row({"cubic", "asymmetric"}, {1, 0, 0, 0}, 8)[1], 0.59375f - 0.09375f, 1e-6);
  expect_row({"bicubic_pillow"}, {0, 1, 2, 3}, {0, 1, 2, 3});
}

TEST(Interpolate, PadsAreZeros) {
  expect_row({"nearest", "asymmetric", "floor"}, {1, 2}, {0, 0, 1, 1, 2, 2, 0, 0},
             attributes({{"pads_begin", "0,0,1"}, {"pads_end", "0,0,1"}}));
  expect_row({"linear", "asymmetric"}, {2, 4}, {0, 1, 2, 3, 4, 4},
             attributes({{"pads_begin", "0,0,1"}}));
}

TEST(Interpolate, ScalesAndOldVersions) {
  const Tensor data = Tensor::of<float>(ElementType::f32, {1, 1, 1, 4}, {1, 2, 3, 4});
  std::vector<Tensor> inputs{data, Tensor::of<float>(ElementType::f32, {2}, {2, 1.6f}),
                             Tensor::of<int>(ElementType::i64, {2}, {-2, -1})};
  const Attributes scales = attributes({{"mode", "nearest"},
                                        {"shape_calculation_mode", "scales"},
                                        {"coordinate_transformation_mode", "asymmetric"},
                                        {"nearest_mode", "floor"}});
  OpDesc desc = make_desc("Interpolate", 11, scales, inputs, {false, true, true});
  EXPECT_EQ(desc.outputs[0].shape, (Shape{1, 1, 2, 6}));
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(),
            (std::vector<float>{1, 1, 2, 2, 3, 4, 1, 1, 2, 2, 3, 4}));
  check_op(desc, inputs);
  inputs = {data, Tensor::of<int>(ElementType::i64, {4}, {1, 1, 1, 2}),
            Tensor::of<float>(ElementType::f32, {4}, {1, 1, 1, 1.5f})};
  desc = make_desc("Interpolate", 4, scales, inputs, {false, true, true});
  EXPECT_EQ(desc.outputs[0].shape, (Shape{1, 1, 1, 6}));
  inputs = {data, Tensor::of<int>(ElementType::i64, {1}, {7})};
  desc = make_desc("Interpolate", 1,
                   attributes({{"mode", "linear"}, {"axes", "3"}, {"align_corners", "true"}}),
                   inputs, {false, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(),
            (std::vector<float>{1, 1.5f, 2, 2.5f, 3, 3.5f, 4}));
}

TEST(Interpolate, RefusesWhatCannotBe) {
  std::vector<Tensor> inputs;
  const Tensor data = random_tensor({1, 2, 4, 4});
  EXPECT_THROW(describe_interpolate({"wobbly"}, data, {2}, {3}, inputs), Error);
  EXPECT_THROW(describe_interpolate({"linear", "sideways"}, data, {2}, {3}, inputs), Error);
  EXPECT_THROW(describe_interpolate({"linear"}, data, {4}, {3}, inputs), Error);
  EXPECT_THROW(describe_interpolate({"linear"}, data, {2}, {0}, inputs), Error);
  EXPECT_THROW(describe_interpolate({"linear"}, data, {2}, {-5}, inputs), Error);
  EXPECT_THROW(describe_interpolate({"linear"}, data, {2}, {1 << 23}, inputs),
               Error);  // tables of gigabytes
  EXPECT_THROW(
      describe_interpolate({"linear"}, data, {2}, {3}, inputs, attributes({{"pads_begin", "-1"}})),
      Error);
}

TEST(Interpolate, IntegersAreRounded) {
  std::vector<Tensor> inputs;
  const Tensor bytes = Tensor::of(ElementType::u8, {1, 1, 1, 3}, std::vector<int64_t>{0, 255, 250});
  const OpDesc desc = describe_interpolate({"linear", "half_pixel"}, bytes, {3}, {5}, inputs);
  // At -0.2, 0.4, 1, 1.6 and 2.2 of the bytes.
  EXPECT_EQ(reference(desc, inputs)[0].to_ints(), (std::vector<int64_t>{0, 102, 255, 252, 250}));
}

// Runs on the device with its own traits, and with points planned for a GPU.
void add_interpolate_tail(OpDesc& desc, std::vector<Tensor>& inputs) {
  const size_t operand = inputs.size();
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 4));
  desc.inputs.push_back(
      with_gaps(TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape), 3, 1));
  desc.constants.push_back({});
  desc.tail = {{"add", 0, 0, static_cast<int>(operand)}, {"relu"}};
}

// 2^22 columns shrink to one before one row grows to 2^22: 2^44 elements would not fit memory.
TEST(Interpolate, ShrinksBeforeItGrows) {
  constexpr int kMany = 1 << 22;
  const Tensor data =
      Tensor::of<int>(ElementType::u8, {1, kMany}, std::vector<int>(static_cast<size_t>(kMany), 7));
  std::vector<Tensor> inputs;
  const OpDesc desc =
      describe_interpolate({"nearest", "asymmetric", "floor"}, data, {0, 1}, {kMany, 1}, inputs);
  const Tensor out = reference(desc, inputs)[0];
  EXPECT_EQ(out.shape(), (Shape{kMany, 1}));
  EXPECT_EQ(out.to_ints().back(), 7);
}

TEST(Interpolate, NearestTwice) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_interpolate({"nearest", "asymmetric", "floor"},
                                     random_tensor({2, 21, 5, 7}), {2, 3}, {10, 14}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 7, 16);
  add_interpolate_tail(desc, inputs);
  check_both(desc, inputs);
}

TEST(Interpolate, Linear) {
  std::vector<Tensor> inputs;
  OpDesc desc =
      describe_interpolate({"linear_onnx"}, random_tensor({2, 13, 5, 7}), {2, 3}, {11, 20}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  add_interpolate_tail(desc, inputs);
  check_both(desc, inputs);
  check_op(describe_interpolate({"linear"}, random_tensor({1, 1, 9, 8}), {3}, {5}, inputs), inputs);
}

TEST(Interpolate, CubicAndPillow) {
  std::vector<Tensor> inputs;
  check_op(describe_interpolate({"cubic"}, random_tensor({1, 9, 6, 7}), {2, 3}, {9, 5}, inputs),
           inputs);
  check_op(describe_interpolate({"bicubic_pillow"}, random_tensor({1, 9, 16, 17}), {2, 3}, {5, 23},
                                inputs),
           inputs);
}

TEST(Interpolate, VolumesRowsAndOddAxes) {
  std::vector<Tensor> inputs;
  check_op(describe_interpolate({"linear_onnx"}, random_tensor({1, 3, 2, 3, 4}), {2, 3, 4},
                                {4, 5, 8}, inputs),
           inputs);
  check_op(describe_interpolate({"nearest"}, random_tensor({2, 3, 9}), {2}, {6}, inputs), inputs);
  check_op(describe_interpolate({"linear"}, random_tensor({2, 3, 4, 5}), {1, 0}, {5, 3}, inputs),
           inputs);
}

TEST(Interpolate, Integers) {
  std::vector<Tensor> inputs;
  check_op(describe_interpolate({"nearest"}, random_ints(ElementType::i32, {1, 3, 4, 5}, -99, 99),
                                {2, 3}, {8, 10}, inputs, attributes({{"pads_end", "0,0,1,0"}})),
           inputs);
}

TEST(Interpolate, HalfStorage) {
  std::vector<Tensor> inputs;
  OpDesc desc =
      describe_interpolate({"linear"}, random_tensor({1, 9, 6, 7}), {2, 3}, {9, 5}, inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, inputs, {1e-3, 1e-3});
}

}  // namespace
}  // namespace clinfer::test
