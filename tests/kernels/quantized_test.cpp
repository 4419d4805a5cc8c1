// Operations on bytes: convolutions, products, maxima and sums of quantised activations, each
// against the reference. Sums are exact, so results may differ only in rounding half-way between
// two bytes, by one.
#include "engine/ocl/compiler/program_cache.h"
#include "engine/ocl/compiler/programs.h"
#include "engine/ocl/device.h"
#include "kernels/tail.h"
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"
#include "tests/temporary_folder.h"

namespace clinfer::test {
namespace {

const ConvolutionCase kQuantizedCases[] = {
    {"Convolution", {1, 3, 15, 14}, {16, 3, 3, 3}, "2,2", "1,1", "1,1", "0"},
    {"Convolution", {2, 16, 9, 10}, {35, 16, 1, 1}, "1,1", "0,0", "1,1", "128"},
    {"Convolution", {1, 22, 8, 9}, {17, 22, 3, 3}, "1,1", "2,2", "2,2", "7"},
    {"Convolution", {1, 32, 7, 7}, {64, 32, 3, 3}, "1,1", "1,1", "1,1", "254"},
    {"GroupConvolution", {1, 24, 6, 8}, {3, 16, 8, 3, 3}, "1,1", "1,1", "1,1", "100"},
    {"GroupConvolution", {1, 24, 9, 7}, {24, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "3"},
    {"GroupConvolution", {2, 21, 9, 11}, {21, 1, 1, 5, 5}, "2,2", "2,2", "1,1", "0"},
    {"GroupConvolution", {1, 16, 9, 11}, {16, 1, 1, 3, 4}, "1,2", "1,1", "2,1", "128"},
    {"GroupConvolution", {1, 5, 6, 7}, {5, 1, 1, 3, 3}, "1,1", "1,1", "1,1", "3,0,255,128,7"},
    {"Convolution", {2, 3, 9, 21}, {8, 3, 7, 5}, "1,2", "3,2", "1,1", "77"},
    {"Convolution", {1, 5, 4, 3}, {9, 5, 5, 6}, "1,1", "3,4", "1,1", "200"},
};

// Every second case runs on views.
TEST(Quantized, ConvolutionsAddUpExactly) {
  bool view = false;
  for (const ConvolutionCase& c : kQuantizedCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    EXPECT_EQ(desc.outputs[0].type, ElementType::f32);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
      desc.outputs[0] = with_gaps(desc.outputs[0]);
    }
    view = !view;
    check_op(desc, inputs, kExact);
  }
}

// Weights that originally had a zero point.
TEST(Quantized, ConvolutionsMakeUpForShifts) {
  bool view = true;
  for (const ConvolutionCase& c : kQuantizedCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs, true);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 8, 4);
    view = !view;
    check_op(desc, inputs, kExact);
  }
}

TEST(Quantized, ConvolutionsWithoutDotProducts) {
  const DeviceTraits traits = gpu_traits();
  for (size_t i : {1, 2})
    for (const bool shifted : {false, true}) {
      std::vector<Tensor> inputs;
      const OpDesc desc = describe(kQuantizedCases[i], ElementType::u8, inputs, shifted);
      check_op(desc, inputs, kExact, &traits);
    }
}

void check_with(const DeviceTraits& traits) {
  for (const ConvolutionCase& c : kQuantizedCases)
    for (const bool shifted : {false, true}) {
      std::vector<Tensor> inputs;
      const OpDesc desc = describe(c, ElementType::u8, inputs, shifted);
      check_op(desc, inputs, kExact, &traits);
    }
}

// In the form of which Intel's compiler makes an instruction.
TEST(Quantized, ConvolutionsForIntelsDevices) {
  DeviceTraits traits = intel_gpu("tgllp", 96);
  traits.sub_groups = 0;
  for (size_t i : {2, 9})
    for (const bool shifted : {false, true}) {
      std::vector<Tensor> inputs;
      const OpDesc desc = describe(kQuantizedCases[i], ElementType::u8, inputs, shifted);
      check_op(desc, inputs, kExact, &traits);
    }
}

// Processors with AVX-512 may also have the other encoding, that of smaller processors.
TEST(Quantized, ConvolutionsOfAvxVnni) {
  if (device_traits().dot != DotProduct::avx512 || !ocl::host_has_avx_vnni())
    GTEST_SKIP() << "the processor has AVX-VNNI alone (all tests use it), or not at all";
  DeviceTraits traits = device_traits();
  traits.dot = DotProduct::avx;
  traits.vector_width = 8;
  check_with(traits);
}

// Each processor with such an instruction can also compute without it, in vectors of each width.
TEST(Quantized, ConvolutionsByPairs) {
  DeviceTraits traits = device_traits();
  if (traits.dot != DotProduct::avx512 && traits.dot != DotProduct::avx &&
      traits.dot != DotProduct::pairs)
    GTEST_SKIP() << "no processor with AVX2, or a compiler that was not tried with it";
  traits.dot = DotProduct::pairs;
  for (const unsigned width : {16, 8}) {
    if (width > device_traits().vector_width) continue;
    traits.vector_width = width;
    check_with(traits);
    // The largest possible pairs.
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kQuantizedCases[3], ElementType::u8, inputs);
    for (auto [tensor, low, high] : {std::tuple(0, 0.f, 255.f), std::tuple(1, -128.f, 127.f)}) {
      std::vector<float> values = inputs[tensor].to_floats();
      for (float& value : values) value = value < (low + high) / 2 ? low : high;
      inputs[tensor] = Tensor::of<float>(inputs[tensor].type(), inputs[tensor].shape(), values);
    }
    desc.constants[1] = inputs[1];
    check_op(desc, inputs, kExact, &traits);
  }
}

// Some compilers abort the process when they are asked for the binary of a program with such
// instructions.
TEST(Quantized, ProgramsWithInstructionsOfTheProcessorGoThroughTheCache) {
  const auto context = ocl::Context::create(ocl::select_device("GPU"));
  std::vector<DeviceTraits> kinds{device_traits()};
  if (kinds[0].dot == DotProduct::avx512 || kinds[0].dot == DotProduct::avx)
    kinds.emplace_back(kinds[0]).dot = DotProduct::pairs;
  for (const DeviceTraits& traits : kinds) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(kQuantizedCases[1], ElementType::u8, inputs);
    std::vector<ocl::Instantiation> programs;
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->reject(desc, traits).empty())
        for (const KernelSpec& spec :
             family->plan(desc, traits, family->heuristic(desc, traits)).launches)
          programs.push_back(ocl::instantiate(spec));
    EXPECT_FALSE(programs.empty());
    const TemporaryFolder folder;
    const ocl::ProgramCache cache(folder / "programs");
    ocl::BuildOptions options;
    options.cache = &cache;
    options.compilers = std::make_shared<ocl::CompilerPool>(context->device.info, "", 0);  // none
    for (int i = 0; i < 2; ++i) ocl::Programs::build(*context, programs, options);
  }
}

// A layer of floats before a quantised one; optionally, other layers read it as well.
TEST(Quantized, ConvolutionsOfFloatsMakeBytes) {
  const DeviceTraits gpu = gpu_traits();
  for (size_t i : {1, 2, 4, 5, 6})
    for (const bool keeps : {false, true}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe(kQuantizedCases[i], ElementType::f32, inputs);
      if (keeps) {
        desc.outputs.push_back(with_gaps(desc.outputs[0], 3, 5));
        desc.tail.push_back({"keep"});
      } else {
        desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
      }
      quantize_output(desc, inputs, 20, 255);
      check_op(desc, inputs, kOneByte);
      check_op(desc, inputs, kOneByte, &gpu);
    }
}

// The lowest level is stored as byte 0.
TEST(Quantized, ConvolutionsCountFromTheLowestLevel) {
  const DeviceTraits gpu = gpu_traits();
  for (size_t i : {1, 3, 5}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kQuantizedCases[i], ElementType::u8, inputs);
    const Shape channels{1, desc.outputs[0].shape[1], 1, 1};
    add_constant(desc, inputs, "multiply", random_tensor(channels, 0.001f, 0.003f, 3));
    desc.tail.push_back({"to_byte", -128, 127});
    desc.outputs[0].type = ElementType::u8;
    check_op(desc, inputs, kOneByte);
    check_op(desc, inputs, kOneByte, &gpu);
  }
}

TEST(Quantized, ConvolutionsAddBytesAndRequantise) {
  for (size_t i : {0, 4, 5}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kQuantizedCases[i], ElementType::u8, inputs);
    desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    add_bytes(desc, inputs);
    quantize_output(desc, inputs, 0.005f, 255);
    check_op(desc, inputs, kOneByte);
  }
}

TEST(Quantized, ConvolutionsKeepWhatTheyRequantise) {
  for (size_t i : {0, 1, 4, 5}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kQuantizedCases[i], ElementType::u8, inputs);
    desc.outputs.push_back(with_gaps(desc.outputs[0], 3, 5));
    desc.tail.push_back({"keep"});
    quantize_output(desc, inputs, 0.005f, 255);
    check_op(desc, inputs, kOneByte);
  }
}

TEST(Quantized, ProductsAddUpExactly) {
  for (const char* transposed : {"false", "true"}) {
    const Shape weights = transposed[0] == 't' ? Shape{10, 37} : Shape{37, 10};
    std::vector<Tensor> inputs{random_ints(ElementType::u8, {5, 37}, 0, 255, 1),
                               transposed[0] == 't'
                                   ? shifted_weights(weights)
                                   : random_ints(ElementType::i8, weights, -127, 127, 2)};
    OpDesc desc =
        make_desc("MatMul", 1, attributes({{"transpose_b", transposed}, {"zero_point", "9"}}),
                  inputs, {false, true});
    if (transposed[0] == 't') quantize_output(desc, inputs, 0.005f, 256);
    check_op(desc, inputs, desc.tail.empty() ? kExact : kOneByte);
  }
  // The weights are too large for the cache: each block of channels brings the next one's.
  const std::vector<Tensor> inputs{random_ints(ElementType::u8, {7, 450}, 0, 255, 1),
                                   random_ints(ElementType::i8, {450, 330}, -127, 127, 2)};
  check_op(make_desc("MatMul", 1, attributes({{"zero_point", "9"}}), inputs, {false, true}), inputs,
           kExact);
}

// Bytes are compared as such on CPUs and as integers on GPUs, one by one or in vectors; windows of
// a whole image are shared by work-items there.
TEST(Quantized, MaximaOfBytesAreBytes) {
  const DeviceTraits gpu = gpu_traits();
  const Attributes small = attributes(
      {{"kernel", "3,3"}, {"strides", "2,2"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
  const Attributes whole = attributes({{"kernel", "9,10"}, {"strides", "1,1"}});
  const std::pair<Shape, Attributes> cases[] = {
      {{1, 19, 9, 10}, small}, {{2, 32, 9, 10}, small}, {{1, 32, 9, 10}, whole}};
  for (const auto& [shape, given] : cases) {
    const std::vector<Tensor> inputs{random_ints(ElementType::u8, shape, 0, 255, 1)};
    const OpDesc desc = make_desc("MaxPool", 1, given, inputs, {false});
    ASSERT_EQ(desc.outputs[0].type, ElementType::u8);
    check_op(desc, inputs, kExact);
    check_op(desc, inputs, kExact, &gpu);
  }
}

// Maxima of floats of 8 bits, and larger images of them, are such floats.
TEST(Quantized, FloatsOf8BitsMove) {
  const DeviceTraits gpu = gpu_traits();
  for (const int64_t channels : {19, 32}) {
    const Tensor x = random_tensor({2, channels, 9, 10}, -3, 3, 1).convert(ElementType::f8e4m3);
    const OpDesc pool = make_desc(
        "MaxPool", 1,
        attributes(
            {{"kernel", "3,3"}, {"strides", "2,2"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}}),
        {x}, {false});
    ASSERT_EQ(pool.outputs[0].type, ElementType::f8e4m3);
    check_op(pool, {x}, kExact);
    check_op(pool, {x}, kExact, &gpu);
    const std::vector<Tensor> inputs{x, Tensor::of<float>(ElementType::f32, {2}, {2, 3}),
                                     Tensor::of<int64_t>(ElementType::i64, {2}, {2, 3})};
    const OpDesc grown = make_desc("Interpolate", 11,
                                   attributes({{"mode", "nearest"},
                                               {"shape_calculation_mode", "scales"},
                                               {"coordinate_transformation_mode", "asymmetric"},
                                               {"nearest_mode", "floor"}}),
                                   inputs, {false, true, true});
    ASSERT_EQ(grown.outputs[0].type, ElementType::f8e4m3);
    check_op(grown, inputs, kExact);
    check_op(grown, inputs, kExact, &gpu);
  }
}

TEST(Quantized, ImagesOfBytesGrow) {
  for (const Shape& shape : {Shape{1, 19, 3, 4}, Shape{2, 32, 5, 3}}) {
    const std::vector<Tensor> inputs{random_ints(ElementType::u8, shape, 0, 255, 1),
                                     Tensor::of<float>(ElementType::f32, {2}, {2, 3}),
                                     Tensor::of<int64_t>(ElementType::i64, {2}, {2, 3})};
    Attributes given = attributes({{"mode", "nearest"},
                                   {"shape_calculation_mode", "scales"},
                                   {"coordinate_transformation_mode", "asymmetric"},
                                   {"nearest_mode", "floor"}});
    const OpDesc desc = make_desc("Interpolate", 11, given, inputs, {false, true, true});
    ASSERT_EQ(desc.outputs[0].type, ElementType::u8);
    check_op(desc, inputs, kExact);
    given.set("mode", "linear");
    EXPECT_TRUE(
        refusals(make_desc("Interpolate", 11, given, inputs, {false, true, true}), gpu_traits())
            .contains("bytes between others"));
  }
}

TEST(Quantized, PoolingMakesBytes) {
  for (const char* type : {"MaxPool", "AvgPool"}) {
    std::vector<Tensor> inputs{random_tensor({1, 19, 9, 10}, -1, 1)};
    OpDesc desc = make_desc(type, 1,
                            attributes({{"kernel", "3,3"},
                                        {"strides", "2,2"},
                                        {"pads_begin", "1,1"},
                                        {"pads_end", "1,1"},
                                        {"exclude-pad", "true"}}),
                            inputs, {false});
    quantize_output(desc, inputs, 100, 256);
    check_op(desc, inputs, kOneByte);
  }
}

TEST(Quantized, QuantizeAndDequantize) {
  const auto number = [](float value) { return Tensor::of<float>(ElementType::f32, {}, {value}); };
  for (const Shape& shape : {Shape{1, 3, 9, 8}, Shape{2, 32, 5, 5}, Shape{7}}) {
    std::vector<Tensor> inputs{random_tensor(shape, -1, 1), number(100), number(120)};
    check_op(make_desc("Quantize", 1, attributes({{"levels", "200"}}), inputs, {false, true, true}),
             inputs, kOneByte);
    inputs = {random_ints(ElementType::u8, shape, 0, 255), number(0.125f), number(-16)};
    OpDesc desc = make_desc("Dequantize", 1, {}, inputs, {false, true, true});
    check_op(desc, inputs, kExact);
    if (shape.size() != 4) continue;
    add_bytes(desc, inputs);  // a sum of two quantised tensors
    quantize_output(desc, inputs, 0.5f, 256);
    check_op(desc, inputs, kOneByte);
  }
}

TEST(Quantized, TiesGoToEvenAndEndsAreKept) {
  std::vector<Tensor> inputs{
      Tensor::of<float>(ElementType::f32, {8}, {0.5f, 1.5f, 2.5f, -3, 254.5f, 255.5f, 1e9f, -1e9f}),
      Tensor::of<float>(ElementType::f32, {}, {1}), Tensor::of<float>(ElementType::f32, {}, {0})};
  const OpDesc desc =
      make_desc("Quantize", 1, attributes({{"levels", "256"}}), inputs, {false, true, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(),
            (std::vector<float>{0, 2, 2, 0, 254, 255, 255, 0}));
  check_op(desc, inputs, kExact);
}

TEST(Quantized, RefusesWhatIsNotBytes) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe(kQuantizedCases[1], ElementType::u8, inputs);
  desc.outputs[0].type = ElementType::u8;  // without a tail that converts to bytes
  EXPECT_TRUE(
      refusals(desc, gpu_traits()).contains("the output is neither of a float type nor quantised"));
  EXPECT_FALSE(refusals(desc, gpu_traits()).contains("")) << "a family takes it";
  desc = describe(kQuantizedCases[1], ElementType::u8, inputs);
  desc.constants[1] = {};
  EXPECT_TRUE(refusals(desc, gpu_traits()).contains("the weights are not constant"));
  EXPECT_FALSE(refusals(desc, gpu_traits()).contains("")) << "a family takes it";
  desc = describe(kQuantizedCases[1], ElementType::u8, inputs, true);
  desc.constants[1] = random_ints(ElementType::i16, kQuantizedCases[1].filter, -255, 255, 2);
  EXPECT_TRUE(refusals(desc, gpu_traits())
                  .contains("the weights of a channel lie more than 255 apart, or from 0"));
  EXPECT_FALSE(refusals(desc, gpu_traits()).contains("")) << "a family takes it";
}

}  // namespace
}  // namespace clinfer::test
