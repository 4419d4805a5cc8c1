// Which tuning points fit the registers of Intel's GPUs: those that are not offered spill, says the
// offline compiler of what is offered that it does not (tests/kernels/ocloc).
#include <array>

#include "engine/ocl/compiler/programs.h"
#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"

namespace clinfer::test {
namespace {

TEST(IntelTiles, FitTheRegisters) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
                         ElementType::f16, inputs);
  const auto offers_tile = [&](const DeviceTraits& traits, int vector, int tile_p, int slices) {
    return offers("conv_tile", desc, traits,
                  {{"VECTOR", vector}, {"VECTORS", 1}, {"TILE_P", tile_p}, {"SLICES", slices}});
  };
  for (const auto& [vector, tile_p, slices] :
       {std::array{8, 4, 2}, {8, 8, 1}, {4, 6, 1}, {4, 8, 1}, {2, 8, 1}}) {
    EXPECT_TRUE(offers_tile(hopper("NVIDIA H200"), vector, tile_p, slices));
    EXPECT_FALSE(offers_tile(intel_gpu("skl", 24), vector, tile_p, slices)) << vector << tile_p;
    EXPECT_FALSE(offers_tile(intel_gpu("pvc", 512), vector, tile_p, slices)) << vector << tile_p;
  }
  for (const auto& [vector, tile_p, slices] : {std::array{8, 4, 1}, {2, 6, 1}}) {
    EXPECT_TRUE(offers_tile(intel_gpu("skl", 24), vector, tile_p, slices)) << vector << tile_p;
    EXPECT_FALSE(offers_tile(intel_gpu("pvc", 512), vector, tile_p, slices)) << vector << tile_p;
  }
  for (const char* device : {"skl", "dg2", "pvc"})
    EXPECT_TRUE(offers_tile(intel_gpu(device, 512), 4, 2, 2)) << device;
  EXPECT_FALSE(offers_tile(intel_gpu("dg2", 512), 4, 4, 2));

  // Along a row of pixels.
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::f16, inputs);
  for (const auto& [vector, tile_p, slices] : {std::array{8, 6, 1}, {4, 8, 2}}) {
    EXPECT_TRUE(offers_tile(hopper("NVIDIA H200"), vector, tile_p, slices));
    EXPECT_FALSE(offers_tile(intel_gpu("skl", 24), vector, tile_p, slices)) << vector << tile_p;
  }
  for (const auto& [vector, tile_p, slices] : {std::array{8, 4, 2}, {4, 8, 1}})
    EXPECT_TRUE(offers_tile(intel_gpu("skl", 24), vector, tile_p, slices)) << vector << tile_p;
  EXPECT_TRUE(offers_tile(intel_gpu("skl", 24), 8, 1, 8));
  const OpDesc plain = desc;
  const std::vector<Tensor> its_inputs = inputs;
  for (int i = 0; i < 3; ++i)
    add_activation(desc, inputs, "add", random_tensor({1, 64, 1, 1}, -1, 1, 3));
  EXPECT_FALSE(offers_tile(intel_gpu("icllp", 64), 4, 8, 1));
  desc = plain, inputs = its_inputs;
  EXPECT_TRUE(offers_tile(intel_gpu("pvc", 512), 4, 4, 1));
  EXPECT_TRUE(offers_tile(intel_gpu("pvc", 512), 4, 2, 8));
  EXPECT_FALSE(offers_tile(intel_gpu("pvc", 512), 4, 3, 4));
  add_functions(desc, inputs);
  EXPECT_FALSE(offers_tile(intel_gpu("skl", 24), 8, 4, 2));
  EXPECT_FALSE(offers_tile(intel_gpu("skl", 24), 8, 1, 8));
  EXPECT_TRUE(offers_tile(intel_gpu("skl", 24), 4, 1, 8));
  EXPECT_FALSE(offers_tile(intel_gpu("pvc", 512), 4, 4, 1));
  EXPECT_TRUE(offers_tile(intel_gpu("pvc", 512), 4, 2, 1));

  // In sub-groups of 32, which their compiler would take, they spill nevertheless.
  const auto is_narrow = [](const DeviceTraits& traits) {
    return ocl::compiler_options(traits).find("-DSUB_GROUP=16") != std::string::npos;
  };
  EXPECT_TRUE(is_narrow(intel_gpu("pvc", 512)));
  EXPECT_FALSE(is_narrow(intel_gpu("skl", 24)));
  EXPECT_FALSE(is_narrow(hopper("NVIDIA H200")));
}

TEST(IntelTiles, OfBytesFitTheRegisters) {
  std::vector<Tensor> inputs;
  OpDesc desc;
  const auto offers_tile = [&](const char* device, int vector, int tile_p) {
    return offers("conv_int8", desc, intel_gpu(device, 96),
                  {{"VECTOR", vector}, {"TILE_P", tile_p}});
  };
  const ConvolutionCase around{"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"};
  desc = describe(around, ElementType::u8, inputs);
  for (const char* device : {"skl", "dg2", "pvc"}) {
    for (const auto& [vector, tile_p] : {std::array{2, 8}, {4, 8}, {8, 4}})
      EXPECT_FALSE(offers_tile(device, vector, tile_p)) << device << vector << tile_p;
    for (const auto& [vector, tile_p] : {std::array{2, 4}, {4, 4}, {8, 2}})
      EXPECT_TRUE(offers_tile(device, vector, tile_p)) << device << vector << tile_p;
  }
  // Sums of the pixels' bytes, of which plain arithmetic has one for each channel.
  desc = describe(around, ElementType::u8, inputs, true);
  EXPECT_FALSE(offers_tile("skl", 4, 4));
  EXPECT_FALSE(offers_tile("pvc", 4, 4));
  EXPECT_TRUE(offers_tile("dg2", 4, 4));
  // A long row of pixels, and few channels.
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::u8, inputs);
  EXPECT_TRUE(offers_tile("skl", 4, 8));
  EXPECT_TRUE(offers_tile("dg2", 8, 4));
  EXPECT_FALSE(offers_tile("dg2", 8, 8));
  EXPECT_FALSE(offers_tile("pvc", 4, 8));
  desc = describe({"Convolution", {1, 3, 72, 72}, {64, 3, 3, 3}, "1,1", "1,1", "1,1"},
                  ElementType::u8, inputs);
  EXPECT_TRUE(offers_tile("skl", 2, 8));
  EXPECT_TRUE(offers_tile("skl", 4, 4));
  EXPECT_FALSE(offers_tile("skl", 4, 8));
  EXPECT_FALSE(offers_tile("pvc", 4, 4));
}

TEST(IntelTiles, OfOtherKindsFitTheRegisters) {
  std::vector<Tensor> inputs;
  OpDesc desc;
  const auto offers_depthwise = [&](int vector, int tile_p) {
    const bool bytes = desc.inputs[0].type == ElementType::u8;
    return offers(bytes ? "conv_depthwise_int8" : "conv_depthwise", desc, intel_gpu("dg2", 512),
                  {{"VECTOR", vector}, {"TILE_P", tile_p}});
  };
  const ConvolutionCase wide{
      "GroupConvolution", {1, 32, 72, 72}, {32, 1, 1, 5, 5}, "2,2", "2,2", "1,1"};
  const ConvolutionCase narrow{
      "GroupConvolution", {1, 32, 72, 72}, {32, 1, 1, 3, 3}, "1,1", "1,1", "1,1"};
  for (const ElementType type : {ElementType::u8, ElementType::f16, ElementType::f32}) {
    desc = describe(wide, type, inputs);
    for (const auto& [vector, tile_p] : {std::array{8, 4}, {4, 8}, {2, 8}})
      EXPECT_FALSE(offers_depthwise(vector, tile_p)) << vector << tile_p;
    EXPECT_TRUE(offers_depthwise(8, 2));
  }
  desc = describe(narrow, ElementType::f16, inputs);
  EXPECT_TRUE(offers_depthwise(8, 4));
  EXPECT_TRUE(offers_depthwise(4, 8));
  desc.outputs[0].type = ElementType::f32;
  EXPECT_FALSE(offers_depthwise(4, 8));
  desc = describe(narrow, ElementType::u8, inputs);
  EXPECT_FALSE(offers_depthwise(4, 8));
  desc.outputs[0].type = ElementType::u8;
  EXPECT_FALSE(offers_depthwise(8, 4));
  EXPECT_TRUE(offers_depthwise(4, 8));
  // Halves that are not aligned.
  desc = describe({"GroupConvolution", {1, 33, 72, 72}, {33, 1, 1, 3, 3}, "1,1", "1,1", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_FALSE(offers_depthwise(4, 8));
  EXPECT_TRUE(offers_depthwise(4, 4));

  inputs = {random_tensor({1, 32, 9, 9}, -1, 1, 1), random_tensor({32, 32, 2, 2}, -1, 1, 2)};
  desc = make_desc(
      "ConvolutionBackpropData", 1,
      attributes(
          {{"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}, {"dilations", "1,1"}}),
      inputs, {false, true});
  const auto offers_sums = [&](const DeviceTraits& traits, int vector, int tile_p) {
    return offers("deconv_tile", desc, traits, {{"VECTOR", vector}, {"TILE_P", tile_p}});
  };
  EXPECT_TRUE(offers_sums(hopper("NVIDIA H200"), 16, 4));
  EXPECT_FALSE(offers_sums(intel_gpu("skl", 24), 16, 4));
  EXPECT_TRUE(offers_sums(intel_gpu("skl", 24), 8, 4));
  EXPECT_FALSE(offers_sums(intel_gpu("tgllp", 96), 8, 8));
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  EXPECT_FALSE(offers_sums(intel_gpu("skl", 24), 16, 8));
  EXPECT_TRUE(offers_sums(intel_gpu("skl", 24), 16, 4));

  inputs = {random_tensor({1, 16, 30, 40}, -1, 1, 1)};
  desc = make_desc(
      "MaxPool", 1,
      attributes(
          {{"kernel", "3,3"}, {"strides", "2,2"}, {"pads_begin", "0,0"}, {"pads_end", "0,0"}}),
      inputs, {});
  const auto offers_pools = [&](const DeviceTraits& traits, int vector) {
    return offers("pool_tile", desc, traits, {{"VECTOR", vector}, {"TILE_P", 8}});
  };
  EXPECT_TRUE(offers_pools(hopper("NVIDIA H200"), 8));
  EXPECT_FALSE(offers_pools(intel_gpu("skl", 24), 8));
  EXPECT_TRUE(offers_pools(intel_gpu("skl", 24), 4));

  const Tensor value = random_tensor({1, 16, 30, 40}, -1, 1, 1);
  inputs = {value, value};
  desc = make_desc("Add", 1, {}, inputs, {});
  for (int more = 0; more < 7; ++more) add_activation(desc, inputs, "multiply", value);
  EXPECT_TRUE(offers("elementwise", desc, hopper("NVIDIA H200"), {{"V", 8}}));
  EXPECT_FALSE(offers("elementwise", desc, intel_gpu("skl", 24), {{"V", 8}}));
  EXPECT_TRUE(offers("elementwise", desc, intel_gpu("skl", 24), {{"V", 4}}));
}

TEST(IntelTiles, LeaveRegistersToTails) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe({"Convolution", {1, 64, 6, 5}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
                         ElementType::f16, inputs);
  const auto offers_sixteen_sums = [&] {
    return offers("conv_subgroup", desc, intel_gpu("dg2", 512), {{"VECTORS", 4}, {"TILE_P", 4}});
  };
  EXPECT_TRUE(offers_sixteen_sums());
  add_functions(desc, inputs);
  EXPECT_FALSE(offers_sixteen_sums());

  // A row of pixels that is none for the tail.
  desc = describe({"Convolution", {1, 64, 6, 5}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::f32, inputs);
  const auto offers_twelve = [&] {
    return offers("conv_subgroup", desc, intel_gpu("dg2", 512), {{"VECTORS", 1}, {"TILE_P", 12}});
  };
  EXPECT_TRUE(offers_twelve());
  add_activation(desc, inputs, "add", random_tensor({1, 64, 6, 1}, -1, 1, 3));
  EXPECT_FALSE(offers_twelve());

  // One operand, for four vectors, beside the rest of a run, and in rows of the kernel.
  const auto offers_point = [&](const char* device, const Values& values) {
    return offers("conv_subgroup", desc, intel_gpu(device, 512), values);
  };
  const auto add_bias = [&] {
    add_activation(desc, inputs, "add", random_tensor({1, 64, 1, 1}, -1, 1, 3));
  };
  const Values four{{"VECTORS", 4}, {"TILE_P", 4}, {"READS", 2}};
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
                  ElementType::f32, inputs);
  EXPECT_TRUE(offers_point("dg2", four));
  add_bias();
  EXPECT_FALSE(offers_point("dg2", four));
  EXPECT_TRUE(offers_point("dg2", {{"VECTORS", 4}, {"TILE_P", 4}, {"READS", 1}}));

  const Values halves{{"VECTORS", 2}, {"TILE_P", 8}, {"WEIGHT", 2}};
  for (const int channels : {64, 40}) {
    desc =
        describe({"Convolution", {1, channels, 72, 72}, {64, channels, 1, 1}, "1,1", "0,0", "1,1"},
                 ElementType::f16, inputs);
    EXPECT_TRUE(offers_point("dg2", halves)) << channels;
    add_bias();
    EXPECT_EQ(offers_point("dg2", halves), channels == 64);
  }

  const Values eight{{"VECTORS", 1}, {"TILE_P", 8}};
  desc = describe({"Convolution", {1, 3, 72, 72}, {64, 3, 5, 5}, "1,1", "2,2", "1,1"},
                  ElementType::f32, inputs);
  EXPECT_TRUE(offers_point("pvc", eight));
  add_bias();
  EXPECT_FALSE(offers_point("pvc", eight));
}

TEST(IntelTiles, OfRowsFitTheRegisters) {
  std::vector<Tensor> inputs;
  const ConvolutionCase around{"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"};
  OpDesc desc;
  const auto offers_rows = [&](const char* device, int vectors, int tile_p) {
    return offers("conv_xmx16", desc, intel_gpu(device, 512),
                  {{"PIXELS", 8}, {"VECTORS", vectors}, {"TILE_P", tile_p}});
  };
  desc = describe(around, ElementType::f16, inputs);
  for (const char* device : {"pvc", "bmg"}) EXPECT_TRUE(offers_rows(device, 4, 16)) << device;
  EXPECT_FALSE(offers_rows("dg2", 1, 8));
  // Beside an operand, fewer blocks at once and no sums of slices.
  const auto offers_pvc = [&](int reads, int slices, int pixels) {
    return offers(
        "conv_xmx16", desc, intel_gpu("pvc", 512),
        {{"VECTORS", 4}, {"TILE_P", 16}, {"READS", reads}, {"SLICES", slices}, {"PIXELS", pixels}});
  };
  const auto add_bias = [&] {
    add_constant(desc, inputs, "add", random_tensor({1, 64, 1, 1}, -1, 1, 3));
  };
  EXPECT_TRUE(offers_pvc(4, 1, 8));
  add_bias();
  EXPECT_FALSE(offers_pvc(4, 1, 8));
  EXPECT_TRUE(offers_pvc(2, 1, 8));
  desc = describe({"Convolution", {1, 256, 72, 72}, {64, 256, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_FALSE(offers_pvc(2, 4, 8));
  EXPECT_FALSE(offers_pvc(4, 1, 1));
  add_bias();
  EXPECT_TRUE(offers_pvc(2, 1, 1));
  desc = describe(around, ElementType::f16, inputs);
  add_functions(desc, inputs);
  EXPECT_FALSE(offers_rows("pvc", 4, 16));
  EXPECT_TRUE(offers_rows("pvc", 2, 16));
  desc = describe(around, ElementType::u8, inputs);
  EXPECT_FALSE(offers_rows("pvc", 2, 16));
  EXPECT_TRUE(offers_rows("pvc", 2, 8));
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::u8, inputs);
  EXPECT_FALSE(offers_rows("pvc", 4, 16));
  EXPECT_TRUE(offers_rows("pvc", 2, 16));
}

TEST(IntelTiles, OfMatricesFitTheRegisters) {
  std::vector<Tensor> inputs;
  OpDesc desc;
  const auto offers_matrices = [&](int vectors, int tile_p, int reads, int slices = 1) {
    return offers("conv_xmx8", desc, intel_gpu("dg2", 512),
                  {{"VECTORS", vectors}, {"TILE_P", tile_p}, {"READS", reads}, {"SLICES", slices}});
  };
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 3, 3}, "1,1", "1,1", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_TRUE(offers_matrices(4, 2, 1));
  EXPECT_FALSE(offers_matrices(4, 2, 2));
  EXPECT_TRUE(offers_matrices(4, 1, 1, 4));
  EXPECT_FALSE(offers_matrices(2, 2, 1, 4));  // the sums of slices
  add_activation(desc, inputs, "add", random_tensor(desc.outputs[0].shape, -1, 1, 4));
  EXPECT_FALSE(offers_matrices(4, 2, 1));
  EXPECT_TRUE(offers_matrices(2, 2, 2));
  // A long row of pixels.
  desc = describe({"Convolution", {1, 64, 72, 72}, {64, 64, 1, 1}, "1,1", "0,0", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_TRUE(offers_matrices(4, 2, 2));
  EXPECT_FALSE(offers_matrices(4, 2, 4));
  add_activation(desc, inputs, "add", random_tensor(desc.outputs[0].shape, -1, 1, 4));
  EXPECT_FALSE(offers_matrices(4, 2, 2));
  EXPECT_TRUE(offers_matrices(4, 2, 1));
  // Rows of the kernel as runs.
  desc = describe({"Convolution", {1, 8, 72, 72}, {64, 8, 3, 3}, "1,1", "1,1", "1,1"},
                  ElementType::f16, inputs);
  EXPECT_FALSE(offers_matrices(4, 2, 1));
  EXPECT_TRUE(offers_matrices(2, 2, 1));
}

}  // namespace
}  // namespace clinfer::test
