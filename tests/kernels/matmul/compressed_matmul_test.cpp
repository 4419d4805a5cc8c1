// CompressedMatMul: the family against the reference, for all numbers of bits, with groups and
// zeros, on CPUs and GPUs.
#include "kernels/matmul/compressed_matmul.h"

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

struct CompressedCase {
  Shape x;
  int64_t columns;
  int bits = 4;
  int64_t groups = 1;
  bool zeros = true;
};

OpDesc compressed_case(const CompressedCase& c, std::vector<Tensor>& inputs) {
  const int64_t depth = c.x.back();
  const auto most = static_cast<float>((1 << c.bits) - 1);
  Tensor zeros = random_ints(ElementType::u8, {c.columns, c.groups}, 0, (1 << c.bits) - 1, 4)
                     .convert(ElementType::f32);
  if (!c.zeros)
    zeros = Tensor::of(ElementType::f32, zeros.shape(),
                       std::vector<float>(static_cast<size_t>(zeros.elements()),
                                          static_cast<float>(1 << (c.bits - 1))));
  inputs = {random_tensor(c.x, -1, 1, 1),
            packed_codes(random_ints(ElementType::u8, {c.columns, depth}, 0, (1 << c.bits) - 1, 2),
                         c.bits),
            random_tensor({c.columns, c.groups}, 0.5f / most, 1 / most, 3), zeros};
  OpDesc desc =
      make_desc("CompressedMatMul", 1, attributes({{"bits", std::to_string(c.bits).c_str()}}),
                inputs, {false, true, true, true});
  return desc;
}

void add_tail_of(OpDesc& desc, std::vector<Tensor>& inputs) {
  inputs.push_back(random_tensor({desc.outputs[0].shape.back()}, -1, 1, 5));
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 6));
  for (const size_t i : {inputs.size() - 2, inputs.size() - 1}) {
    desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, inputs[i].shape()));
    desc.constants.push_back(i + 2 == inputs.size() ? inputs[i] : Tensor());
    desc.tail.push_back({"add", 0, 0, static_cast<int>(i)});
  }
  desc.tail.push_back({"relu"});
}

// Returns why the family refuses the product.
std::string refusal(const OpDesc& desc, const DeviceTraits& traits) {
  return find_op("CompressedMatMul", 1)->families[0]->reject(desc, traits);
}

// Compares on the device, unless it is a GPU that multiplies faster by floats.
void check_on_device(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance t = {}) {
  if (device_traits().is_cpu || refusal(desc, device_traits()).empty()) check_op(desc, inputs, t);
}

TEST(CompressedMatMul, ReferenceByHand) {
  const std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {1, 4}, {1, 10, 100, 1000}),
      packed_codes(Tensor::of<uint8_t>(ElementType::u8, {2, 4}, {1, 2, 3, 15, 0, 8, 9, 10}), 4),
      Tensor::of<float>(ElementType::f32, {2, 2}, {1, 2, 0.5f, 1}),
      Tensor::of<float>(ElementType::f32, {2, 2}, {0, 1, 8, 8})};
  const OpDesc desc = make_desc("CompressedMatMul", 1, attributes({{"bits", "4"}}), inputs,
                                {false, true, true, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(),
            (std::vector<float>{21 + 400 + 28000, -4 + 0 + 100 + 2000}));
}

TEST(CompressedMatMul, EachNumberOfBits) {
  const DeviceTraits gpu = gpu_traits();
  for (const int bits : {2, 4, 8})
    for (const bool zeros : {false, true}) {
      std::vector<Tensor> inputs;
      OpDesc desc = compressed_case({{3, 96}, 50, bits, 3, zeros}, inputs);
      check_on_device(desc, inputs);
      EXPECT_GE(check_op(desc, inputs, {}, &gpu), 2u);
      add_tail_of(desc, inputs);
      check_on_device(desc, inputs);
      check_op(desc, inputs, {}, &gpu);
    }
}

// Rows beyond those of a tile; one run of words for a scale, or several.
TEST(CompressedMatMul, RowsAndGroups) {
  const DeviceTraits gpu = gpu_traits();
  for (const auto& [rows, depth, groups] : {std::tuple<int64_t, int64_t, int64_t>{1, 1024, 1},
                                            {1, 320, 10},
                                            {13, 88, 1},
                                            {16, 768, 4},
                                            {101, 416, 13},
                                            {7, 520, 1}}) {
    std::vector<Tensor> inputs;
    OpDesc desc = compressed_case({{rows, depth}, 37, 4, groups}, inputs);
    add_tail_of(desc, inputs);
    check_on_device(desc, inputs);
    if (rows <= 16) check_op(desc, inputs, {}, &gpu);
  }
}

TEST(CompressedMatMul, BatchesAndViews) {
  std::vector<Tensor> inputs;
  OpDesc desc = compressed_case({{2, 3, 5, 64}, 33, 8, 2}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  add_tail_of(desc, inputs);
  check_on_device(desc, inputs);
  desc = compressed_case({{64}, 9, 4, 2}, inputs);
  check_on_device(desc, inputs);
}

TEST(CompressedMatMul, Halves) {
  for (const int64_t rows : {1, 40}) {
    std::vector<Tensor> inputs;
    OpDesc desc = compressed_case({{rows, 256}, 40, 4, 8}, inputs);
    desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
    check_on_device(desc, inputs, {2e-3, 2e-3});
  }
}

TEST(CompressedMatMul, Refuses) {
  std::vector<Tensor> inputs;
  const auto of = [&](const CompressedCase& c, const DeviceTraits& traits) {
    return refusal(compressed_case(c, inputs), traits);
  };
  const std::string floats = "the GPU multiplies faster by floats";
  DeviceTraits cpu = device_traits(), gpu = gpu_traits();
  cpu.is_cpu = true;
  gpu.matrix = MatrixUnit::none;
  EXPECT_EQ(of({{17, 96}, 8, 8}, cpu), "");
  EXPECT_EQ(of({{16, 96}, 8, 8}, gpu), "");
  EXPECT_EQ(of({{17, 96}, 8}, gpu), floats);
  EXPECT_EQ(of({{1, 12}, 8}, gpu), "weights of one scale do not fill words of 32 bits");
  gpu.matrix = MatrixUnit::ptx;
  EXPECT_EQ(of({{4, 96}, 8}, gpu), "");
  EXPECT_EQ(of({{5, 96}, 8}, gpu), floats);
  EXPECT_EQ(of({{1, 96}, 8, 8}, gpu), floats);
  EXPECT_THROW(compressed_case({{1, 96}, 8, 3}, inputs), Error);
  EXPECT_THROW(compressed_case({{1, 96}, 8, 4, 5}, inputs), Error);
}

// The weights take their bits in memory, and nothing holds them as floats.
TEST(CompressedMatMul, PacksNoFloats) {
  std::vector<Tensor> inputs;
  const OpDesc desc = compressed_case({{4, 256}, 64, 4, 2}, inputs);
  const KernelFamily& family = *find_op("CompressedMatMul", 1)->families[0];
  for (const DeviceTraits& traits : {device_traits(), gpu_traits()}) {
    const KernelPlan plan = family.plan(desc, traits, family.heuristic(desc, traits));
    size_t bytes = plan.workspace;
    for (const auto& pack : plan.packed) bytes += pack().size();
    EXPECT_LE(bytes, 64u * 256 / 2 + 2 * 2 * 64 * sizeof(float) + 64 * 256 / 2);
    EXPECT_EQ(plan.packed[0]().size() % (64 * 256 / 2), 0u);
  }
}

}  // namespace
}  // namespace clinfer::test
