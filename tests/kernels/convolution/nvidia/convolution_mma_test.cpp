// Convolutions and products by matrix instructions. Devices without these emulate them, so that
// every index of packing, reading and storing is checked without the hardware.
#include "kernels/convolution/tiles/convolution_int8.h"
#include "kernels/tail.h"
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

bool takes(const OpDesc& desc, const char* family) {
  const DeviceTraits traits = matrix_traits();
  for (const KernelFamily* f : find_op(desc.type, desc.opset)->families)
    if (f->name == family) return f->reject(desc, traits).empty();
  return false;
}

// Whole and partial tiles of pixels, blocks of channels and steps; strides, dilations, borders.
const ConvolutionCase kCases[] = {
    {"Convolution", {2, 16, 5, 7}, {8, 16, 1, 1}, "1,1", "0,0", "1,1", "0"},
    {"Convolution", {1, 24, 6, 5}, {37, 24, 1, 1}, "1,1", "0,0", "1,1", "128"},
    {"Convolution", {1, 32, 7, 9}, {64, 32, 3, 3}, "1,1", "1,1", "1,1", "7"},
    {"Convolution", {2, 40, 9, 8}, {20, 40, 3, 2}, "2,1", "2,1", "2,1", "254"},
    {"Convolution", {1, 72, 3, 3}, {24, 72, 5, 5}, "1,1", "2,2", "1,1", "1"},
    {"GroupConvolution", {1, 48, 6, 8}, {3, 16, 16, 3, 3}, "1,1", "1,1", "1,1", "100"},
};

TEST(MatrixInstructions, HalvesAddUpInFloats) {
  const DeviceTraits traits = matrix_traits();
  bool view = false;
  for (const ConvolutionCase& c : kCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 16);
      desc.outputs[0] = with_gaps(desc.outputs[0], 8, 8);
    }
    view = !view;
    check_op(desc, inputs, kHalf, &traits, "conv_mma");
  }
}

// Kernels with tiles in local memory, for warpgroups.
TEST(MatrixInstructions, WarpgroupsMultiplyTiles) {
  const ConvolutionCase cases[] = {
      {"Convolution", {2, 16, 5, 7}, {64, 16, 1, 1}, "1,1", "0,0", "1,1", "0"},
      {"Convolution", {1, 24, 9, 10}, {53, 24, 3, 3}, "1,1", "1,1", "1,1", "0"},
      {"Convolution", {2, 8, 9, 8}, {136, 8, 3, 2}, "2,1", "2,1", "2,1", "0"},
      {"Convolution", {1, 72, 13, 11}, {72, 72, 5, 5}, "1,1", "2,2", "1,1", "0"},
      {"Convolution", {1, 64, 7, 9}, {264, 64, 3, 2}, "1,2", "1,0", "1,2", "0"},
      {"Convolution", {2, 128, 6, 7}, {72, 128, 3, 3}, "1,1", "1,1", "1,1", "0"},
      {"Convolution", {3, 64, 5, 6}, {56, 64, 5, 3}, "1,1", "2,1", "1,1", "0"},
      {"Convolution", {1, 384, 4, 5}, {18, 384, 3, 3}, "1,1", "1,1", "1,1", "0"},
      {"Convolution", {1, 776, 3, 5}, {36, 776, 2, 2}, "1,1", "0,0", "1,1", "0"},
  };
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;  // no layer is too small
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  bool view = false;
  for (const ConvolutionCase& c : cases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    if (view) {
      desc.inputs[0] = with_gaps(desc.inputs[0], 8, 16);
      desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    }
    add_constant(desc, inputs, "multiply", random_tensor({1, c.filter[0], 1, 1}));
    add_activation(desc, inputs, "add",
                   random_tensor(desc.outputs[0].shape).convert(ElementType::f16));
    desc.tail.push_back({"relu"});
    view = !view;
    check_op(desc, inputs, kHalf, &traits, "conv_wgmma");
  }
}

// Tiles of bytes: sums as they are, and converted to bytes.
TEST(MatrixInstructions, WarpgroupsAddUpBytes) {
  const ConvolutionCase cases[] = {
      {"Convolution", {2, 32, 5, 7}, {64, 32, 1, 1}, "1,1", "0,0", "1,1", "0"},
      {"Convolution", {1, 48, 9, 10}, {53, 48, 3, 3}, "1,1", "1,1", "1,1", "128"},
      {"Convolution", {2, 16, 9, 8}, {136, 16, 3, 2}, "2,1", "2,1", "2,1", "254"},
      {"Convolution", {1, 128, 7, 9}, {264, 128, 3, 2}, "1,2", "1,0", "1,2", "7"},
      // Taps share pixels.
      {"Convolution", {2, 256, 6, 7}, {72, 256, 3, 3}, "1,1", "1,1", "1,1", "33"},
      {"Convolution", {3, 128, 5, 6}, {56, 128, 5, 3}, "1,1", "2,1", "1,1", "254"},
  };
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  bool view = true, quantised = false;
  for (const ConvolutionCase& c : cases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 16, 16);
    if (quantised) quantize_output(desc, inputs, 5e-4f, 255);
    view = !view;
    if (!view) quantised = !quantised;
    check_op(desc, inputs, quantised ? kOneByte : kExact, &traits, "conv_wgmma");
  }
}

// Sums of products of floats of 8 bits: short ones, and long ones of several parts, also of slices
// and of taps that share pixels; floats, and floats of 8 bits behind a tail that reads some.
TEST(MatrixInstructions, WarpgroupsMultiplyFloatsOf8Bits) {
  const ConvolutionCase cases[] = {
      {"Convolution", {2, 32, 5, 7}, {64, 32, 1, 1}, "1,1", "0,0", "1,1"},
      {"Convolution", {1, 48, 9, 10}, {53, 48, 3, 3}, "1,1", "1,1", "1,1"},
      {"Convolution", {2, 128, 9, 8}, {136, 128, 3, 2}, "2,1", "2,1", "2,1"},
      {"Convolution", {2, 256, 6, 7}, {72, 256, 3, 3}, "1,1", "1,1", "1,1"},
      {"Convolution", {1, 2048, 8, 7}, {72, 2048, 1, 1}, "1,1", "0,0", "1,1"},
  };
  for (const unsigned units : {0, 2}) {
    DeviceTraits traits = matrix_traits();
    traits.compute_units = units;
    traits.max_work_group = 512;
    traits.grid_barrier = GridBarrier::none;
    if (!traits.wgmma) traits.local_memory = 227 << 10;
    bool view = false, stores = units > 0;
    for (const ConvolutionCase& c : cases) {
      // Few units share the long sums of the last cases.
      if ((units > 0) != (c.data[1] >= 256)) continue;
      std::vector<Tensor> inputs;
      OpDesc desc = describe(c, ElementType::f8e4m3, inputs);
      EXPECT_EQ(desc.outputs[0].type, ElementType::f32);
      if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 16, 16);
      view = !view;
      stores = !stores;
      if (stores) {
        // Sums of small integers are exact, so that no number lies on the other side of a middle.
        for (size_t k : {0, 1})
          inputs[k] =
              random_ints(ElementType::i8, inputs[k].shape(), -2, 2, static_cast<unsigned>(k))
                  .convert(ElementType::f8e4m3);
        desc.constants[1] = inputs[1];
        add_float8_and_store(desc, inputs);
      }
      check_op(desc, inputs, stores ? Tolerance{0, 0} : Tolerance{1e-3, 1e-3}, &traits,
               "conv_wgmma");
    }
  }
}

// Where tiles are few, slices of a work-group share the steps of a tile: pointwise, with shared pixels, with
// strides, and bytes, whose start sums count once.
TEST(MatrixInstructions, WarpgroupsAddUpSlices) {
  const ConvolutionCase cases[] = {
      {"Convolution", {1, 1024, 8, 7}, {72, 1024, 1, 1}, "1,1", "0,0", "1,1", "7"},
      {"Convolution", {1, 256, 10, 12}, {64, 256, 3, 3}, "1,1", "1,1", "1,1", "254"},
      {"Convolution", {2, 384, 9, 17}, {64, 384, 3, 2}, "2,2", "1,1", "1,1", "1"},
  };
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 2;
  traits.max_work_group = 512;
  traits.grid_barrier = GridBarrier::none;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  for (const ElementType type : {ElementType::f16, ElementType::u8})
    for (const ConvolutionCase& c : cases) {
      std::vector<Tensor> inputs;
      const OpDesc desc = describe(c, type, inputs);
      bool offered = false;
      for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
        if (family->name == "conv_wgmma")
          for (const TuningPoint& point : family->space(desc, traits))
            offered = offered || point["SLICES"] > 1;
      EXPECT_TRUE(offered) << desc.inputs[0].shape[1];
      check_op(desc, inputs, type == ElementType::u8 ? kExact : kHalf, &traits, "conv_wgmma");
    }
}

// On the devices that have the instructions, long sums of many channels take tiles larger than OpenCL C
// can declare, and a step's products run on while the next step's begin.
TEST(MatrixInstructions, WarpgroupsOverlapLongSums) {
  const auto plan_of = [](const ConvolutionCase& c, std::string& why) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(c, ElementType::f16, inputs);
    const DeviceTraits traits = hopper("NVIDIA H100 80GB HBM3");
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
      if (family->name == "conv_wgmma") {
        why = family->reject(desc, traits);
        if (why.empty()) return family->plan(desc, traits, family->heuristic(desc, traits));
      }
    return KernelPlan{};
  };
  const auto define_of = [](const KernelSpec& spec, const std::string& name) {
    for (const auto& [define, value] : spec.defines)
      if (define == name) return value;
    return std::string("none");
  };
  std::string why;
  const KernelPlan large =
      plan_of({"Convolution", {34, 256, 40, 40}, {512, 256, 3, 3}, "2,2", "1,1", "1,1", "0"}, why);
  ASSERT_EQ(large.launches.size(), 1u) << why;
  const KernelSpec& spec = large.launches[0];
  EXPECT_GT(spec.shared, size_t{48} << 10);
  EXPECT_LE(spec.shared, size_t{227} << 10);
  EXPECT_EQ(define_of(spec, "LOCAL_BYTES"), std::to_string(spec.shared));
  EXPECT_EQ(define_of(spec, "COPIES_LEFT"),
            std::to_string(std::stoi(define_of(spec, "STAGES")) - 3));
  EXPECT_NE(define_of(spec, "MULTIPLY(s, a, b)").find("wait_group.sync.aligned 1;"),
            std::string::npos);

  const KernelPlan one_step =
      plan_of({"Convolution", {32, 64, 56, 56}, {256, 64, 1, 1}, "1,1", "0,0", "1,1", "0"}, why);
  ASSERT_EQ(one_step.launches.size(), 1u) << why;
  // Work-groups with producers take one tile after the other: no more than run at once.
  const KernelSpec& staying = one_step.launches[0];
  EXPECT_EQ(define_of(staying, "PRODUCERS"), "128");
  EXPECT_LE(staying.global[0] / staying.local[0], 3u * 132);

  plan_of({"Convolution", {32, 256, 24, 42}, {24, 256, 3, 3}, "1,1", "1,1", "1,1", "0"}, why);
  EXPECT_NE(why.find("output channels"), std::string::npos) << why;
  plan_of({"Convolution", {32, 384, 19, 19}, {36, 384, 3, 3}, "1,1", "1,1", "1,1", "0"}, why);
  EXPECT_EQ(why, "");

  plan_of({"Convolution", {1, 512, 7, 7}, {512, 512, 1, 1}, "1,1", "0,0", "1,1", "0"}, why);
  EXPECT_NE(why.find("products"), std::string::npos) << "four tiles for 132 compute units: " << why;
}

TEST(MatrixInstructions, WarpgroupsLeaveShiftedWeights) {
  const ConvolutionCase c = {
      "Convolution", {2, 32, 5, 7}, {64, 32, 1, 1}, "1,1", "0,0", "1,1", "0"};
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(c, ElementType::u8, inputs, true);
  for (const KernelFamily* family : find_op(desc.type, desc.opset)->families)
    if (family->name == "conv_wgmma") {
      EXPECT_NE(family->reject(desc, matrix_traits()).find("shift"), std::string::npos);
    }
}

TEST(MatrixInstructions, BytesAddUpExactly) {
  const DeviceTraits traits = matrix_traits();
  bool view = true;
  for (const ConvolutionCase& c : kCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    if (view) desc.inputs[0] = with_gaps(desc.inputs[0], 16, 8);
    view = !view;
    check_op(desc, inputs, kExact, &traits, "conv_mma");
  }
}

// Sums of both signs around the largest of which floats' bits can be made, and beyond.
TEST(MatrixInstructions, BytesOfSmallAndLargeSums) {
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  for (const int64_t channels : {128, 144})
    for (const float weight : {-128.f, 127.f})
      for (const char* zero : {"0", "255"}) {
        const ConvolutionCase c = {
            "Convolution", {1, channels, 2, 2}, {64, channels, 1, 1}, "1,1", "0,0", "1,1", zero};
        std::vector<Tensor> inputs;
        OpDesc desc = describe(c, ElementType::u8, inputs);
        for (const auto& [i, value] : {std::pair(0, zero[0] == '0' ? 255.f : 0.f), {1, weight}})
          inputs[i] = Tensor::of<float>(
              inputs[i].type(), inputs[i].shape(),
              std::vector<float>(static_cast<size_t>(inputs[i].elements()), value));
        desc.constants[1] = inputs[1];
        EXPECT_EQ(has_small_sums(desc), channels == 128);
        for (const char* family : {"conv_mma", "conv_wgmma"})
          check_op(desc, inputs, kExact, &traits, family);
      }
}

// Pixels of whole words, which are not read two at once.
TEST(MatrixInstructions, BytesOfSingleWords) {
  const ConvolutionCase cases[] = {
      {"Convolution", {2, 116, 5, 7}, {58, 116, 1, 1}, "1,1", "0,0", "1,1", "0"},
      {"Convolution", {1, 20, 9, 8}, {72, 20, 3, 2}, "2,1", "2,1", "1,2", "200"},
      {"GroupConvolution", {1, 40, 6, 8}, {2, 16, 20, 3, 3}, "1,1", "1,1", "1,1", "100"},
  };
  const DeviceTraits traits = matrix_traits();
  for (const ConvolutionCase& c : cases)
    for (const bool shifted : {false, true}) {
      std::vector<Tensor> inputs;
      OpDesc desc = describe(c, ElementType::u8, inputs, shifted);
      if (shifted) desc.inputs[0] = with_gaps(desc.inputs[0], 4, 12);
      check_op(desc, inputs, kExact, &traits, "conv_mma");
    }
}

// Pixels whose channels are no whole words, or begin within one: pointwise convolutions read them
// in pieces.
TEST(MatrixInstructions, PixelsInPieces) {
  const ConvolutionCase cases[] = {
      {"Convolution", {2, 58, 5, 7}, {58, 58, 1, 1}, "1,1", "0,0", "1,1", "77"},
      {"Convolution", {1, 102, 7, 6}, {33, 102, 1, 1}, "2,1", "0,0", "1,1", "0"},
      {"Convolution", {1, 51, 5, 7}, {58, 51, 1, 1}, "1,1", "0,0", "1,1", "0"},
  };
  const DeviceTraits traits = matrix_traits();
  for (const ConvolutionCase& c : cases)
    for (const bool bytes : {false, true})
      for (const bool halved :
           {false, true}) {  // every second pair of channels is another tensor's
        if (bytes && c.data[1] % 2 != 0) continue;
        std::vector<Tensor> inputs;
        OpDesc desc = describe(c, bytes ? ElementType::u8 : ElementType::f16, inputs);
        if (halved) desc.inputs[0] = with_gaps(desc.inputs[0], 2, 2);
        if (halved) desc.outputs[0] = with_gaps(desc.outputs[0], 2, 2);
        if (halved && bytes) quantize_output(desc, inputs, 5e-4f, 255);
        check_op(desc, inputs, !bytes ? kHalf : halved ? kOneByte : kExact, &traits, "conv_mma");
      }
}

TEST(MatrixInstructions, BytesMakeUpForShifts) {
  const DeviceTraits traits = matrix_traits();
  for (const ConvolutionCase& c : kCases) {
    std::vector<Tensor> inputs;
    const OpDesc desc = describe(c, ElementType::u8, inputs, true);
    check_op(desc, inputs, kExact, &traits, "conv_mma");
  }
}

// Limits of quantised values as NVIDIA's GPUs compute them: in the middle of a tail, of levels below 0,
// around bytes that it adds, and of fewer than 256 levels.
TEST(MatrixInstructions, BytesLimitUnits) {
  DeviceTraits traits = matrix_traits();
  traits.vendor = Vendor::nvidia;
  traits.compute_units = 0;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  const ConvolutionCase c = {
      "Convolution", {2, 32, 5, 7}, {64, 32, 1, 1}, "1,1", "0,0", "1,1", "3"};
  const auto number = [](float value) {
    return Tensor::of<float>(ElementType::f32, {1, 1, 1, 1}, {value});
  };
  for (const auto& [low, levels] : {std::pair{0.f, 256}, {-14.f, 256}, {0.f, 128}}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    const Shape channels = {1, 64, 1, 1};
    add_constant(desc, inputs, "multiply", random_tensor(channels, 2e-4f, 5e-4f, 3));
    add_constant(desc, inputs, "add", random_tensor(channels, 50, 150, 4));
    desc.tail.push_back({"to_level", low, low + 255});
    add_constant(desc, inputs, "multiply", number(0.31f));
    add_constant(desc, inputs, "add", number(-7.3f));
    add_bytes(desc, inputs);
    add_constant(desc, inputs, "multiply", number(1.73f));
    add_constant(desc, inputs, "add", number(40.2f));
    desc.tail.push_back({"to_byte", 0, static_cast<float>(levels - 1)});
    desc.outputs[0].type = ElementType::u8;
    const Tolerance one_level{2.0 / (levels - 1), 0};  // of the largest value, not of all levels
    for (const char* family : {"conv_mma", "conv_wgmma"})
      check_op(desc, inputs, one_level, &traits, family);
    // Without a product before them, limits bring one.
    inputs.resize(2);
    desc.inputs.resize(2);
    desc.constants.resize(2);
    desc.tail = {{"to_byte", 0, static_cast<float>(levels - 1)}};
    check_op(desc, inputs, one_level, &traits, "conv_mma");
  }
}

// A work-item stores 16 bytes at once where the channels are whole vectors of 16 and the tail's operands are
// aligned to 16 bytes. Elsewhere it stores 8.
TEST(MatrixInstructions, WarpgroupsStoreVectorsOfBytes) {
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  const auto number_of = [](const KernelSpec& spec, const std::string& name) {
    for (const auto& [define, value] : spec.defines)
      if (define == name) return std::stoi(value);
    return 0;
  };
  for (const auto& [channels, gap, wide] : {std::tuple<int64_t, int64_t, bool>{80, 0, true},
                                            {64, 16, true},
                                            {64, 8, false},
                                            {72, 8, false}}) {
    const ConvolutionCase c = {
        "Convolution", {2, 32, 5, 7}, {channels, 32, 1, 1}, "1,1", "0,0", "1,1", "3"};
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::u8, inputs);
    add_bytes(desc, inputs);
    desc.inputs.back() =
        with_gaps(TensorDesc::channels_last(ElementType::u8, desc.outputs[0].shape), gap, gap);
    quantize_output(desc, inputs, 5e-4f, 255);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
      if (family->name != "conv_wgmma") continue;
      for (const TuningPoint& point : family->space(desc, traits))
        EXPECT_EQ(number_of(family->plan(desc, traits, point).launches[0], "VECTOR"),
                  wide && point["COLUMNS"] >= 64 ? 16 : 8)
            << channels << " " << gap;
    }
    check_op(desc, inputs, kOneByte, &traits, "conv_wgmma");
  }
}

// A tile's rows past the last pixel write nothing into the tail's second output.
TEST(MatrixInstructions, TailsKeepWhatPixelsHave) {
  DeviceTraits traits = matrix_traits();
  traits.compute_units = 0;
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  const ConvolutionCase c = {"Convolution", {2, 32, 5, 7}, {64, 32, 3, 3}, "1,1", "1,1", "1,1"};
  std::vector<Tensor> inputs;
  OpDesc desc = describe(c, ElementType::f16, inputs);
  desc.outputs.push_back(with_gaps(desc.outputs[0], 8, 8));
  add_constant(desc, inputs, "add", random_tensor({1, 64, 1, 1}, 0, 2, 5));
  desc.tail.push_back({"keep"});
  desc.tail.push_back({"clamp", -0.5f, 0.5f});
  for (const char* family : {"conv_mma", "conv_wgmma"})
    EXPECT_GT(check_op(desc, inputs, kHalf, &traits, family), 0u) << family;
}

TEST(MatrixInstructions, Tails) {
  const DeviceTraits traits = matrix_traits();
  for (size_t i : {1, 2}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kCases[i], ElementType::f16, inputs);
    desc.outputs[0] = with_gaps(desc.outputs[0], 3, 5);
    add_functions(desc, inputs);
    check_op(desc, inputs, kHalf, &traits, "conv_mma");
  }
}

TEST(MatrixInstructions, BytesAndHalvesMakeBytes) {
  const DeviceTraits traits = matrix_traits();
  for (const auto& [i, type, scale] :
       {std::tuple(3, ElementType::u8, 0.002f), std::tuple(3, ElementType::f16, 20.f),
        std::tuple(1, ElementType::f16, 20.f), std::tuple(5, ElementType::f16, 20.f)}) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(kCases[i], type, inputs);
    quantize_output(desc, inputs, scale, 255);
    check_op(desc, inputs, kOneByte, &traits, "conv_mma");
  }
}

TEST(MatrixInstructions, ProductsOfMatrices) {
  const DeviceTraits traits = matrix_traits();
  for (const char* transposed : {"false", "true"}) {
    const Shape weights = transposed[0] == 't' ? Shape{24, 40} : Shape{40, 24};
    std::vector<Tensor> inputs{
        random_tensor({2, 19, 40}, -1, 1, 1),
        random_tensor(weights, -1, 1, 2).convert(ElementType::f16).convert(ElementType::f32)};
    OpDesc desc =
        make_desc("MatMul", 1, attributes({{"transpose_b", transposed}}), inputs, {false, true});
    desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
    check_op(desc, inputs, kHalf, &traits, "fc_mma");
  }
}

// Long sums of few columns, in either order of the weights.
TEST(MatrixInstructions, ProductsOfBytes) {
  const DeviceTraits traits = matrix_traits();
  for (const char* transposed : {"false", "true"}) {
    const Shape weights = transposed[0] == 't' ? Shape{24, 400} : Shape{400, 24};
    const std::vector<Tensor> inputs{random_ints(ElementType::u8, {2, 19, 400}, 200, 255, 1),
                                     random_ints(ElementType::i8, weights, 100, 127, 2)};
    const OpDesc desc =
        make_desc("MatMul", 1, attributes({{"transpose_b", transposed}, {"zero_point", "3"}}),
                  inputs, {false, true});
    EXPECT_FALSE(has_small_sums(desc));
    check_op(desc, inputs, kExact, &traits, "fc_mma");
  }
}

TEST(MatrixInstructions, RefusesWhatTheyCannotRead) {
  const auto given = [](const ConvolutionCase& c, int64_t gap, int64_t offset) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe(c, ElementType::f16, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0], gap, offset);
    return takes(desc, "conv_mma");
  };
  const ConvolutionCase good{"Convolution", {1, 16, 5, 7}, {8, 16, 1, 1}, "1,1", "0,0", "1,1", "0"};
  EXPECT_TRUE(given(good, 4, 8));
  EXPECT_FALSE(given(good, 4, 2));  // the first pixel
  EXPECT_FALSE(given(good, 2, 8));  // the second
  EXPECT_FALSE(
      given({"Convolution", {1, 18, 5, 7}, {8, 18, 1, 1}, "1,1", "0,0", "1,1", "0"}, 0, 0));
  EXPECT_FALSE(given({"Convolution", {1, 4, 5, 7}, {8, 4, 1, 1}, "1,1", "0,0", "1,1", "0"}, 0, 0));
  std::vector<Tensor> inputs;
  const OpDesc desc = describe(good, ElementType::f16, inputs);
  const DeviceTraits without = gpu_traits();
  EXPECT_TRUE(refusals(desc, without).contains("the device has no matrix instructions of warps"));
}

}  // namespace
}  // namespace clinfer::test
