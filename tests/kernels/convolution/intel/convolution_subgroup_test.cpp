// Convolutions and products by sub-groups, on devices that have them: Intel's GPUs, and Intel's CPU
// runtime, which takes the place of a GPU (tests/kernels/on_intel.py). The offline compiler gets
// every point of them.
#include <cstdlib>

#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

class SubGroups : public testing::Test {
 protected:
  void SetUp() override {
    traits_ = device_traits();
    traits_.is_cpu = false;
    if (traits_.sub_groups == 0 && std::getenv("CLINFER_KERNEL_SOURCES") == nullptr)
      GTEST_SKIP() << "the device has no sub-groups that read blocks";
  }
  DeviceTraits traits_;
};

// Whole and partial tiles of pixels, vectors of channels and blocks of input channels; strides, borders,
// dilations; rows of the kernel as runs (3, 24, 20 channels); runs that slices share (256); groups.
const ConvolutionCase kSubgroupCases[] = {
    {"Convolution", {2, 16, 5, 7}, {8, 16, 1, 1}, "1,1", "0,0", "1,1"},
    {"Convolution", {1, 64, 6, 5}, {70, 64, 1, 1}, "1,1", "0,0", "1,1", "77"},
    {"Convolution", {1, 37, 4, 6}, {33, 37, 1, 1}, "2,2", "1,1", "1,1"},
    {"Convolution", {1, 32, 7, 19}, {64, 32, 3, 3}, "1,1", "1,1", "1,1", "100"},
    {"Convolution", {2, 3, 11, 13}, {20, 3, 3, 3}, "2,2", "1,1", "1,1"},
    {"Convolution", {1, 24, 9, 8}, {16, 24, 3, 2}, "2,1", "2,1", "2,1", "77"},
    {"Convolution", {1, 20, 5, 9}, {24, 20, 5, 5}, "1,1", "2,2", "1,1"},
    {"Convolution", {1, 18, 6, 9}, {24, 18, 3, 3}, "1,1", "2,2", "2,2"},
    {"Convolution", {2, 48, 9, 7}, {40, 48, 3, 3}, "2,1", "2,1", "1,2", "9"},
    {"Convolution", {1, 256, 3, 5}, {32, 256, 3, 3}, "1,1", "1,1", "1,1"},
    {"GroupConvolution", {1, 48, 6, 8}, {3, 16, 16, 3, 3}, "1,1", "1,1", "1,1", "254"},
    {"GroupConvolution", {2, 20, 5, 6}, {2, 6, 10, 3, 3}, "2,2", "1,1", "1,1"},
};

TEST_F(SubGroups, Convolutions) {
  bool view = false;
  for (const ConvolutionCase& c : kSubgroupCases) {
    for (const ElementType type : {ElementType::f32, ElementType::f16}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe(c, type, inputs);
      if (view) {
        desc.inputs[0] = with_gaps(desc.inputs[0], 6, 2);
        desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
      }
      check_op(desc, inputs, type == ElementType::f16 ? kHalf : Tolerance{}, &traits_,
               "conv_subgroup");
    }
    view = !view;
  }
}

TEST_F(SubGroups, BytesAddUpExactly) {
  if (traits_.dot == DotProduct::none) traits_.dot = DotProduct::khr;
  bool view = false;
  for (const ConvolutionCase& c : kSubgroupCases) {
    if (c.filter.end()[-3] % 4 != 0) continue;
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
    check_op(desc, inputs, kExact, &traits_, "conv_subgroup");
    view = !view;
  }
}

// Pixels of bytes of which two blocks are read at once.
TEST_F(SubGroups, WidePixelsOfBytes) {
  if (traits_.dot == DotProduct::none) traits_.dot = DotProduct::khr;
  for (const ConvolutionCase& c :
       {ConvolutionCase{"Convolution", {1, 128, 6, 5}, {70, 128, 1, 1}, "1,1", "0,0", "1,1", "77"},
        {"Convolution", {1, 128, 5, 9}, {70, 128, 3, 3}, "1,1", "1,1", "1,1", "100"}}) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(c, ElementType::u8, inputs);
    check_op(desc, inputs, kExact, &traits_, "conv_subgroup");
  }
}

// Halves of which a pixel begins at an odd place cannot be read as blocks.
TEST_F(SubGroups, OddPlaces) {
  for (const size_t i : {1, 3}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kSubgroupCases[i], ElementType::f16, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0], 5, 1);
    check_op(desc, inputs, kHalf, &traits_, "conv_subgroup");
  }
}

TEST_F(SubGroups, OtherRanks) {
  std::vector<Tensor> inputs{random_tensor({1, 20, 3, 5, 9}, -1, 1, 1),
                             random_tensor({24, 20, 3, 3, 3}, -1, 1, 2)};
  check_op(make_desc("Convolution", 1,
                     attributes({{"strides", "1,1,1"},
                                 {"pads_begin", "1,1,1"},
                                 {"pads_end", "1,1,1"},
                                 {"dilations", "1,1,1"}}),
                     inputs, {false, true}),
           inputs, {}, &traits_, "conv_subgroup");
  inputs = {random_tensor({2, 32, 21}, -1, 1, 1), random_tensor({24, 32, 5}, -1, 1, 2)};
  check_op(
      make_desc("Convolution", 1,
                attributes(
                    {{"strides", "2"}, {"pads_begin", "2"}, {"pads_end", "2"}, {"dilations", "1"}}),
                inputs, {false, true}),
      inputs, {}, &traits_, "conv_subgroup");
}

TEST_F(SubGroups, Tails) {
  for (const size_t i : {1, 3, 10}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kSubgroupCases[i], ElementType::f16, inputs);
    add_functions(desc, inputs);
    check_op(desc, inputs, kHalf, &traits_, "conv_subgroup");
  }
}

TEST_F(SubGroups, MakeBytes) {
  if (traits_.dot == DotProduct::none) traits_.dot = DotProduct::khr;
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::u8}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kSubgroupCases[3], type, inputs);
    quantize_output(desc, inputs, type == ElementType::u8 ? 1e-3f : 20.f, 255);
    check_op(desc, inputs, kOneByte, &traits_, "conv_subgroup");
  }
}

TEST_F(SubGroups, ProductsOfMatrices) {
  for (const char* transposed : {"false", "true"})
    for (const Shape& data : {Shape{2, 19, 72}, Shape{1, 128}}) {
      const int64_t k = data.back();
      std::vector<Tensor> inputs{
          random_tensor(data, -1, 1, 1),
          random_tensor(transposed[0] == 't' ? Shape{24, k} : Shape{k, 24}, -1, 1, 2)
              .convert(ElementType::f16)
              .convert(ElementType::f32)};
      OpDesc desc =
          make_desc("MatMul", 1, attributes({{"transpose_b", transposed}}), inputs, {false, true});
      check_op(desc, inputs, {}, &traits_, "fc_subgroup");
      desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
      check_op(desc, inputs, kHalf, &traits_, "fc_subgroup");
    }
}

OpDesc product_of_bytes(const Shape& data, std::vector<Tensor>& inputs) {
  inputs = {random_ints(ElementType::u8, data, 0, 255, 1),
            random_ints(ElementType::i8, {data.back(), 45}, -128, 127, 2)};
  return make_desc("MatMul", 1, attributes({{"zero_point", "30"}}), inputs, {false, true});
}

TEST_F(SubGroups, ProductsOfBytesAddUpExactly) {
  if (traits_.dot == DotProduct::none) traits_.dot = DotProduct::khr;
  for (const Shape& data : {Shape{5, 100}, {33, 64}, {2, 3, 20, 72}, {1, 256}}) {
    std::vector<Tensor> inputs;
    const OpDesc desc = product_of_bytes(data, inputs);
    check_op(desc, inputs, kExact, &traits_, "fc_subgroup");
  }
}

// A message reads parts of all pixels of a tile where that is possible and fits the registers.
TEST(GatheringSubGroups, AreOffered) {
  std::vector<Tensor> inputs;
  OpDesc desc;
  const auto gathers = [&](const char* device, int vectors, int tile_p, int reads) {
    return offers("conv_subgroup", desc, intel_gpu(device, 96),
                  {{"VECTORS", vectors}, {"TILE_P", tile_p}, {"READS", reads}, {"PIXELS", tile_p}});
  };
  const auto chosen = [&](const char* device) {
    const DeviceTraits traits = intel_gpu(device, 24);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == "conv_subgroup") return family->heuristic(desc, traits)["PIXELS"];
    return 0;
  };
  const ConvolutionCase around{"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"};
  const ConvolutionCase row{"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"};
  desc = describe(around, ElementType::f16, inputs);
  EXPECT_EQ(chosen("skl"), 8);
  EXPECT_TRUE(gathers("skl", 2, 8, 1));
  EXPECT_FALSE(gathers("skl", 2, 8, 2));
  EXPECT_FALSE(gathers("skl", 2, 16, 1));
  desc = describe(around, ElementType::u8, inputs);
  EXPECT_TRUE(gathers("tgllp", 2, 8, 1));
  EXPECT_FALSE(gathers("tgllp", 2, 16, 1));
  desc = describe(row, ElementType::u8, inputs);
  EXPECT_TRUE(gathers("tgllp", 2, 16, 1) && gathers("pvc", 4, 8, 1));
  EXPECT_FALSE(gathers("tgllp", 4, 8, 1));

  // Steps would not be whole, words not aligned, and places have a third dimension.
  desc = describe({"Convolution", {1, 24, 9, 8}, {64, 24, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_FALSE(gathers("skl", 2, 8, 1));
  desc = describe(row, ElementType::f16, inputs);
  EXPECT_TRUE(gathers("skl", 2, 8, 1));
  desc.inputs[0] = with_gaps(desc.inputs[0], 5, 1);
  EXPECT_FALSE(gathers("skl", 2, 8, 1));
  inputs = {random_tensor({1, 32, 3, 5, 9}, -1, 1, 1), random_tensor({32, 32, 3, 3, 3}, -1, 1, 2)};
  desc = make_desc("Convolution", 1,
                   attributes({{"strides", "1,1,1"},
                               {"pads_begin", "1,1,1"},
                               {"pads_end", "1,1,1"},
                               {"dilations", "1,1,1"}}),
                   inputs, {false, true});
  EXPECT_FALSE(gathers("skl", 1, 8, 1));
  EXPECT_TRUE(offers("conv_subgroup", desc, intel_gpu("skl", 24), {{"PIXELS", 1}}));
}

// By matrix instructions, which the device emulates; compilers for devices that have them get those.
class MatrixSubGroups : public SubGroups, public testing::WithParamInterface<MatrixUnit> {
 protected:
  void SetUp() override {
    SubGroups::SetUp();
    traits_.matrix = GetParam();
    const unsigned lanes = GetParam() == MatrixUnit::emulated_xmx8 ? 8 : 16;
    if (traits_.sub_groups != 0 && (traits_.sub_groups & lanes) == 0)
      GTEST_SKIP() << "the device has no sub-groups of " << lanes;
    // As of devices that have them, whose registers are wide.
    if (lanes == 16) traits_.sub_groups &= 16 + 32;
  }
  // That of an operation for so many lanes.
  static std::string family(const std::string& operation) {
    return operation + (GetParam() == MatrixUnit::emulated_xmx8 ? "_xmx8" : "_xmx16");
  }
};
INSTANTIATE_TEST_SUITE_P(Lanes, MatrixSubGroups,
                         testing::Values(MatrixUnit::emulated_xmx8, MatrixUnit::emulated_xmx16),
                         [](const auto& unit) {
                           return unit.param == MatrixUnit::emulated_xmx8 ? "8" : "16";
                         });

// Pixels that are whole words, and groups that fill more than half of a matrix.
bool fits_matrices(const ConvolutionCase& c, int64_t word) {
  return c.filter.end()[-3] % word == 0 && c.filter.end()[-4] > 8;
}

TEST_P(MatrixSubGroups, Convolutions) {
  bool view = false;
  for (const ConvolutionCase& c : kSubgroupCases) {
    if (!fits_matrices(c, 2)) continue;
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 6, 2);
      desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    }
    view = !view;
    check_op(desc, inputs, kHalf, &traits_, family("conv"));
  }
}

TEST_P(MatrixSubGroups, BytesAddUpExactly) {
  bool view = false;
  for (const ConvolutionCase& c : kSubgroupCases) {
    if (!fits_matrices(c, 4)) continue;
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
    check_op(desc, inputs, kExact, &traits_, family("conv"));
    view = !view;
  }
}

// A row of pixels, 3x3, groups, and rows of the kernel as runs.
TEST_P(MatrixSubGroups, Tails) {
  for (const size_t i : {1, 3, 6, 10}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kSubgroupCases[i], ElementType::f16, inputs);
    add_constant(desc, inputs, "add", random_tensor({1, desc.outputs[0].shape[1], 1, 1}, -1, 1, 3));
    check_op(desc, inputs, kHalf, &traits_, family("conv"));
    desc = describe(kSubgroupCases[i], ElementType::f16, inputs);
    add_functions(desc, inputs);
    check_op(desc, inputs, kHalf, &traits_, family("conv"));
    if (!fits_matrices(kSubgroupCases[i], 4)) continue;
    desc = describe(kSubgroupCases[i], ElementType::u8, inputs);
    quantize_output(desc, inputs, 1e-3f, 255);
    check_op(desc, inputs, kOneByte, &traits_, family("conv"));
  }
}

TEST_P(MatrixSubGroups, OtherRanks) {
  std::vector<Tensor> inputs{random_tensor({1, 20, 3, 5, 9}, -1, 1, 1),
                             random_tensor({24, 20, 3, 3, 3}, -1, 1, 2)};
  OpDesc desc = make_desc("Convolution", 1,
                          attributes({{"strides", "1,1,1"},
                                      {"pads_begin", "1,1,1"},
                                      {"pads_end", "1,1,1"},
                                      {"dilations", "1,1,1"}}),
                          inputs, {false, true});
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, inputs, kHalf, &traits_, family("conv"));
}

TEST_P(MatrixSubGroups, ProductsOfMatrices) {
  for (const Shape& data : {Shape{2, 19, 72}, Shape{1, 128}, Shape{3, 256}}) {
    std::vector<Tensor> inputs{random_tensor(data, -1, 1, 1),
                               random_tensor({24, data.back()}, -1, 1, 2)};
    OpDesc desc =
        make_desc("MatMul", 1, attributes({{"transpose_b", "true"}}), inputs, {false, true});
    desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
    check_op(desc, inputs, kHalf, &traits_, family("fc"));
  }
}

TEST_P(MatrixSubGroups, ProductsOfBytesAddUpExactly) {
  for (const Shape& data : {Shape{5, 100}, {2, 3, 20, 72}, {1, 256}}) {
    std::vector<Tensor> inputs;
    const OpDesc desc = product_of_bytes(data, inputs);
    check_op(desc, inputs, kExact, &traits_, family("fc"));
  }
}

// A stand-in reads the blocks of several pixels at once.
class RowSubGroups : public SubGroups {
 protected:
  void SetUp() override {
    SubGroups::SetUp();
    traits_.matrix = MatrixUnit::emulated_xmx16;
    traits_.blocks_2d = Blocks2d::io;
    if (traits_.sub_groups != 0 && (traits_.sub_groups & 16) == 0)
      GTEST_SKIP() << "the device has no sub-groups of 16";
    traits_.sub_groups &= 16 + 32;
  }
  bool reads_rows(const OpDesc& desc) const {
    return offers(desc.type == "MatMul" ? "fc_xmx16" : "conv_xmx16", desc, traits_,
                  {{"PIXELS", 8}});
  }
};

// Rows of the output that are tiles in whole and in part; borders on all sides, strides of rows,
// dilations, groups, several images.
const ConvolutionCase kRows[] = {
    {"Convolution", {1, 64, 6, 5}, {70, 64, 1, 1}, "1,1", "0,0", "1,1", "77"},
    {"Convolution", {2, 144, 3, 3}, {20, 144, 1, 1}, "1,1", "0,0", "1,1", "3"},
    {"Convolution", {1, 64, 7, 19}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
    {"Convolution", {2, 80, 5, 36}, {40, 80, 3, 5}, "2,1", "2,3", "1,1"},
    {"Convolution", {1, 64, 9, 10}, {32, 64, 3, 3}, "1,1", "2,2", "2,2"},
    {"Convolution", {1, 128, 4, 9}, {32, 128, 1, 1}, "1,1", "1,1", "1,1"},
    {"GroupConvolution", {1, 128, 5, 8}, {2, 24, 64, 3, 3}, "1,1", "1,1", "1,1"},
};

TEST_F(RowSubGroups, Convolutions) {
  bool view = false;
  for (const ConvolutionCase& c : kRows) {
    for (const ElementType type : {ElementType::f16, ElementType::u8}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe(c, type, inputs);
      if (view) {
        desc.inputs[0] = with_gaps(desc.inputs[0], 64, 128);
        desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
      }
      EXPECT_TRUE(reads_rows(desc));
      check_op(desc, inputs, type == ElementType::f16 ? kHalf : kExact, &traits_, "conv_xmx16");
    }
    view = !view;
  }
}

TEST_F(RowSubGroups, TailsAndProducts) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe(kRows[2], ElementType::f16, inputs);
  add_functions(desc, inputs);
  EXPECT_TRUE(reads_rows(desc));
  check_op(desc, inputs, kHalf, &traits_, "conv_xmx16");
  desc = describe(kRows[2], ElementType::u8, inputs);
  quantize_output(desc, inputs, 1e-3f, 255);
  EXPECT_TRUE(reads_rows(desc));
  check_op(desc, inputs, kOneByte, &traits_, "conv_xmx16");

  inputs = {random_tensor({2, 19, 64}, -1, 1, 1), random_tensor({64, 24}, -1, 1, 2)};
  desc = make_desc("MatMul", 1, {}, inputs, {false, true});
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  EXPECT_TRUE(reads_rows(desc));
  check_op(desc, inputs, kHalf, &traits_, "fc_xmx16");
  desc = product_of_bytes({33, 64}, inputs);
  EXPECT_TRUE(reads_rows(desc));
  check_op(desc, inputs, kExact, &traits_, "fc_xmx16");
}

TEST_F(RowSubGroups, NeedSurfaces) {
  std::vector<Tensor> inputs;
  const auto given = [&](const ConvolutionCase& c, ElementType type, int64_t gap, int64_t offset) {
    OpDesc desc = describe(c, type, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0], gap, offset);
    return reads_rows(desc);
  };
  EXPECT_TRUE(given(kRows[2], ElementType::f16, 32, 64));
  EXPECT_FALSE(given(kRows[2], ElementType::f16, 32, 16));          // where the first begins
  EXPECT_FALSE(given(kRows[2], ElementType::f16, 8, 64));           // the second row of the input
  EXPECT_TRUE(given(kRows[0], ElementType::f16, 8, 64));            // all pixels are one surface
  EXPECT_FALSE(given(kRows[0], ElementType::f16, 4, 64));           // the second pixel
  EXPECT_FALSE(given(kSubgroupCases[3], ElementType::u8, 32, 64));  // 32 bytes
  ConvolutionCase c = kRows[2];
  c.zero_point = "7";  // which pixels outside have
  EXPECT_TRUE(given(c, ElementType::f16, 0, 0));
  EXPECT_FALSE(given(c, ElementType::u8, 0, 0));
  c.strides = "1,2";
  EXPECT_FALSE(given(c, ElementType::f16, 0, 0));
  traits_.blocks_2d = Blocks2d::none;
  EXPECT_FALSE(given(kRows[2], ElementType::f16, 32, 64));
}

// The layers whose programs tests/kernels/intel_isa.py compiles and counts.
class IntelLayers : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("CLINFER_KERNEL_SOURCES") == nullptr)
      GTEST_SKIP() << "only compiled, by intel_isa.py";
  }
  static void write(const ConvolutionCase& c) {
    std::vector<Tensor> inputs;
    check_op(describe(c, ElementType::f32, inputs), inputs);
    write_bytes(describe(c, ElementType::u8, inputs), inputs);
  }
  static void write_bytes(OpDesc desc, std::vector<Tensor>& inputs) {
    add_constant(
        desc, inputs, "multiply",
        Tensor::of<float>(ElementType::f32, Shape(desc.outputs[0].shape.size(), 1), {0.1f}));
    desc.tail.push_back({"to_byte", 0, 254.f});
    desc.outputs[0].type = ElementType::u8;
    check_op(desc, inputs);
  }
};

TEST_F(IntelLayers, Square) {
  write({"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"});
}

TEST_F(IntelLayers, Pointwise) {
  write({"Convolution", {1, 256, 40, 40}, {256, 256, 1, 1}, "1,1", "0,0", "1,1"});
}

TEST_F(IntelLayers, Depthwise) {
  write({"GroupConvolution", {1, 96, 112, 112}, {96, 1, 1, 3, 3}, "1,1", "1,1", "1,1"});
}

TEST_F(IntelLayers, Product) {
  std::vector<Tensor> inputs{random_tensor({64, 512}, -1, 1, 1),
                             random_tensor({512, 512}, -1, 1, 2)};
  check_op(make_desc("MatMul", 1, {}, inputs, {false, true}), inputs);
  inputs = {random_ints(ElementType::u8, {64, 512}, 0, 255, 1),
            random_ints(ElementType::i8, {512, 512}, -128, 127, 2)};
  write_bytes(make_desc("MatMul", 1, attributes({{"zero_point", "30"}}), inputs, {false, true}),
              inputs);
}

// As in residual networks: a bias, another activation, a limit.
TEST_F(IntelLayers, Tails) {
  for (const ConvolutionCase& c :
       {ConvolutionCase{"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
        {"Convolution", {1, 256, 40, 40}, {256, 256, 1, 1}, "1,1", "0,0", "1,1"},
        {"Convolution", {1, 128, 28, 28}, {128, 128, 3, 3}, "2,2", "1,1", "1,1"},
        {"Convolution", {1, 3, 224, 224}, {32, 3, 3, 3}, "2,2", "1,1", "1,1"}}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f32, inputs);
    add_constant(desc, inputs, "add", random_tensor({1, c.filter[0], 1, 1}, -1, 1, 3));
    add_activation(desc, inputs, "add", random_tensor(desc.outputs[0].shape, -1, 1, 4));
    desc.tail.push_back({"relu"});
    check_op(desc, inputs);
  }
}

TEST(SubGroupRefusals, SayWhy) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(kSubgroupCases[3], ElementType::f32, inputs);
  DeviceTraits traits = gpu_traits();
  EXPECT_TRUE(refusals(desc, traits)
                  .contains("the device has no sub-groups that read blocks (cl_intel_subgroups)"));
  traits.sub_groups = 8 + 16 + 32;
  EXPECT_FALSE(refusals(desc, traits)
                   .contains("the device has no sub-groups that read blocks (cl_intel_subgroups)"));
  traits.is_cpu = true;
  EXPECT_TRUE(refusals(desc, traits).contains("a CPU does as well with the tile kernel"));
}

TEST(SubGroupRefusals, SayWhatMatricesNeed) {
  std::vector<Tensor> inputs;
  DeviceTraits traits = gpu_traits();
  traits.sub_groups = 8 + 16 + 32;
  const OpDesc halves = describe(kSubgroupCases[3], ElementType::f16, inputs);
  EXPECT_TRUE(
      refusals(halves, traits)
          .contains("the device has no matrix instructions of sub-groups of 8 lanes (XMX)"));
  traits.matrix = MatrixUnit::xmx8;
  EXPECT_FALSE(
      refusals(halves, traits)
          .contains("the device has no matrix instructions of sub-groups of 8 lanes (XMX)"));
  EXPECT_TRUE(refusals(halves, traits).contains("the device has no matrix instructions of warps"));
  EXPECT_TRUE(refusals(describe(kSubgroupCases[3], ElementType::f32, inputs), traits)
                  .contains("the data are not f16"));
  EXPECT_TRUE(refusals(describe(kSubgroupCases[2], ElementType::f16, inputs), traits)
                  .contains("the channels of a pixel are not whole words"));
  // A tail computes eight channels at once, of one group.
  OpDesc groups =
      describe({"GroupConvolution", {1, 32, 6, 8}, {2, 12, 16, 3, 3}, "1,1", "1,1", "1,1"},
               ElementType::f16, inputs);
  EXPECT_FALSE(refusals(groups, traits).contains("vectors of channels would straddle groups"));
  groups.tail.push_back({"relu"});
  EXPECT_TRUE(refusals(groups, traits).contains("vectors of channels would straddle groups"));
  traits.matrix = MatrixUnit::xmx16;
  EXPECT_TRUE(refusals(describe(kSubgroupCases[0], ElementType::f16, inputs), traits)
                  .contains("half of a matrix would be empty"));
}

}  // namespace
}  // namespace clinfer::test
