// MatMul: every family against the reference, with constant weights and with two activations.
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

OpDesc product(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b, bool constant,
               std::vector<Tensor>& inputs) {
  inputs = {random_tensor(a, -1, 1, 1), random_tensor(b, -1, 1, 2)};
  return make_desc("MatMul", 1,
                   attributes({{"transpose_a", transpose_a ? "true" : "false"},
                               {"transpose_b", transpose_b ? "true" : "false"}}),
                   inputs, {false, constant});
}

void add_bias(OpDesc& desc, std::vector<Tensor>& inputs) {
  inputs.push_back(random_tensor({desc.outputs[0].shape.back()}, -1, 1, 3));
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, inputs.back().shape()));
  desc.constants.push_back(inputs.back());
  desc.tail.push_back({"add", 0, 0, static_cast<int>(inputs.size()) - 1});
  desc.tail.push_back({"relu"});
}

void add_residual(OpDesc& desc, std::vector<Tensor>& inputs) {
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 4));
  desc.inputs.push_back(
      with_gaps(TensorDesc::row_major(ElementType::f32, desc.outputs[0].shape), 3, 1));
  desc.constants.push_back({});
  desc.tail.push_back({"add", 0, 0, static_cast<int>(inputs.size()) - 1});
}

Shape product_shape(const Shape& a, const Shape& b, bool transpose_a = false,
                    bool transpose_b = false) {
  std::vector<Tensor> inputs;
  return product(a, b, transpose_a, transpose_b, false, inputs).outputs[0].shape;
}

TEST(MatMul, Shapes) {
  EXPECT_EQ(product_shape({2, 3}, {3, 4}), (Shape{2, 4}));
  EXPECT_EQ(product_shape({3, 2}, {4, 3}, true, true), (Shape{2, 4}));
  EXPECT_EQ(product_shape({3}, {3, 4}), (Shape{4}));
  EXPECT_EQ(product_shape({3}, {3, 4}, true, false),
            (Shape{4}));  // transposing a vector changes nothing
  EXPECT_EQ(product_shape({5, 2, 3}, {3}), (Shape{5, 2}));
  EXPECT_EQ(product_shape({7}, {7}), (Shape{}));
  EXPECT_EQ(product_shape({2, 1, 4, 5}, {3, 5, 6}), (Shape{2, 3, 4, 6}));
  EXPECT_THROW(product_shape({2, 3}, {4, 5}), Error);
  EXPECT_THROW(product_shape({2, 4, 5}, {3, 5, 6}), Error);
  EXPECT_THROW(product_shape({}, {3, 5}), Error);
}

TEST(MatMul, ReferenceByHand) {
  std::vector<Tensor> inputs{Tensor::of<float>(ElementType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                             Tensor::of<float>(ElementType::f32, {2, 3}, {1, 10, 100, 2, 20, 200})};
  const OpDesc desc =
      make_desc("MatMul", 1, attributes({{"transpose_b", "true"}}), inputs, {false, false});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(), (std::vector<float>{321, 642, 654, 1308}));
}

TEST(MatMul, FullyConnected) {
  const DeviceTraits gpu = gpu_traits();
  std::vector<Tensor> inputs;
  OpDesc desc = product({1, 133}, {37, 133}, false, true, true, inputs);
  add_bias(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 4u);
  EXPECT_GE(check_op(desc, inputs, {}, &gpu), 4u);
  desc = product({2, 5, 19}, {19, 24}, false, false, true, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  add_residual(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 4u);
  desc = product({2, 3, 2, 7}, {7, 1}, false, false, true, inputs);
  check_op(desc, inputs);
}

// Blocks of channels whose weights are too large for the cache, and few rows: each block brings the
// next one's weights.
TEST(MatMul, BringsWeightsAhead) {
  std::vector<Tensor> inputs;
  const OpDesc desc = product({7, 160}, {160, 300}, false, false, true, inputs);
  EXPECT_GE(check_op(desc, inputs), 4u);
}

// Tokens of several images times weights are one row of pixels to the tiles of warpgroups.
TEST(MatMul, WarpgroupsTakeTokensOfImages) {
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;  // no product is too small
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  std::vector<Tensor> inputs;
  for (const bool views : {false, true}) {
    OpDesc desc = product({2, 21, 72}, {72, 136}, false, false, true, inputs);
    inputs[0] = inputs[0].convert(ElementType::f16).convert(ElementType::f32);
    inputs[1] = inputs[1].convert(ElementType::f16).convert(ElementType::f32);
    desc.constants[1] = inputs[1];
    desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
    if (views) desc.inputs[0] = with_gaps(desc.inputs[0], 8, 16);
    add_bias(desc, inputs);
    add_residual(desc, inputs);
    EXPECT_GE(check_op(desc, inputs, kHalf, &traits, "fc_wgmma"), 1u);
  }
}

TEST(MatMul, RowsInMemoryOrderOfChannels) {  // a row of the first input is not adjacent
  std::vector<Tensor> inputs;
  OpDesc desc = product({9, 6}, {9, 8}, true, false, true, inputs);
  check_op(desc, inputs);
}

TEST(MatMul, TwoActivations) {
  const DeviceTraits gpu = gpu_traits();
  std::vector<Tensor> inputs;
  OpDesc desc = product({2, 3, 13, 21}, {2, 3, 21, 19}, false, false, false, inputs);
  desc.inputs[1] = with_gaps(desc.inputs[1]);
  add_residual(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 2u);
  desc = product({1, 2, 9, 37}, {1, 2, 11, 37}, false, true, false, inputs);
  add_bias(desc, inputs);
  EXPECT_GE(check_op(desc, inputs), 3u);
  EXPECT_GE(check_op(desc, inputs, {}, &gpu), 3u);
}

// A CPU copies the columns of the second operand where they are not adjacent and fit its cache.
TEST(MatMul, CopiesColumns) {
  std::vector<Tensor> inputs;
  DeviceTraits traits;
  traits.is_cpu = true;
  traits.vector_width = 16;
  for (const auto& [rows, depth] : {std::pair{40, 64}, {2, 64}, {40, 600}}) {
    OpDesc desc = product({1, 3, rows, depth}, {1, 3, 37, depth}, false, true, false, inputs);
    desc.inputs[1] = with_gaps(desc.inputs[1]);
    const KernelFamily& family = *find_op("MatMul", 1)->families.back();
    const std::vector<TuningPoint> space = family.space(desc, traits);
    EXPECT_EQ(std::any_of(space.begin(), space.end(), [](const auto& p) { return p["DOT"] == 2; }),
              depth <= 512);
    EXPECT_EQ(family.heuristic(desc, traits)["DOT"], rows > 2 && depth <= 512 ? 2 : 1);
    check_op(desc, inputs);
  }
}

TEST(MatMul, BroadcastAndVectors) {
  std::vector<Tensor> inputs;
  struct ProductCase {
    Shape a, b;
    bool transpose_a, transpose_b;
  };
  for (const ProductCase& c :
       {ProductCase{{2, 1, 4, 5}, {3, 5, 6}, false, false},
        ProductCase{{5, 4}, {3, 6, 5}, true, true}, ProductCase{{5}, {2, 5, 3}, false, false},
        ProductCase{{2, 4, 5}, {5}, false, false}, ProductCase{{33}, {33}, false, false},
        ProductCase{{2, 1, 1, 2, 3, 4}, {1, 3, 2, 1, 4, 5}, false, false}})
    for (bool constant : {false, true}) {
      OpDesc desc = product(c.a, c.b, c.transpose_a, c.transpose_b, constant, inputs);
      check_op(desc, inputs);
    }
}

}  // namespace
}  // namespace clinfer::test
