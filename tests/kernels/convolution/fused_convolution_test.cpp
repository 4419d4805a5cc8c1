// Convolutions that quantise their data or store maxima alone: shapes, values, which tails keep the order of
// numbers, and the kernel.
#include "kernels/convolution/tiles/fused_convolution.h"

#include <functional>

#include "tests/devices.h"
#include "tests/kernels/convolution_case.h"
#include "tests/kernels/refusals.h"

namespace clinfer::test {
namespace {

struct PooledCase {
  ConvolutionCase convolution;
  const char *kernel, *begin, *end, *rounding = "floor";
};

// Windows of maxima that begin before the image or not, and end within it or behind; tiles of 56 and of 64
// columns; all starts of 16 bytes.
const PooledCase kPooledCases[] = {
    {{"Convolution", {2, 3, 21, 19}, {24, 3, 7, 7}, "2,2", "3,3", "1,1", "0"}, "3,3", "1,1", "1,1"},
    {{"Convolution", {1, 3, 14, 236}, {16, 3, 3, 3}, "2,2", "1,1", "1,1", "9"},
     "3,3",
     "0,0",
     "0,0",
     "ceil"},
    {{"Convolution", {1, 3, 10, 131}, {12, 3, 3, 3}, "1,1", "1,1", "1,1", "0"},
     "2,2",
     "0,0",
     "0,0"},
    {{"Convolution", {1, 4, 13, 11}, {40, 4, 5, 5}, "1,1", "2,2", "1,1", "200"},
     "3,3",
     "1,1",
     "0,0"},
};

Attributes pool_of(const PooledCase& c) {
  return attributes({{"kernel", c.kernel},
                     {"strides", "2,2"},
                     {"pads_begin", c.begin},
                     {"pads_end", c.end},
                     {"rounding_type", c.rounding}});
}

OpDesc describe_pooled(const PooledCase& c, ElementType data, std::vector<Tensor>& inputs) {
  Attributes given = describe(c.convolution, data, inputs).attributes;
  add_with_prefix(given, kPoolPrefix, pool_of(c));
  OpDesc pooled = make_desc(kFusedConvolution, 1, given, inputs, {false, true});
  if (data == ElementType::f16) pooled.inputs[0].type = pooled.outputs[0].type = ElementType::f16;
  return pooled;
}

DeviceTraits fused_traits() {
  DeviceTraits traits = matrix_traits();
  if (!traits.wgmma) traits.local_memory = 227 << 10;
  return traits;
}

TEST(FusedConvolution, StoresTheMaximaOfTheSums) {
  for (const PooledCase& c : kPooledCases) {
    std::vector<Tensor> inputs;
    const OpDesc pooled = describe_pooled(c, ElementType::f32, inputs);
    const OpDesc sums = describe(c.convolution, ElementType::f32, inputs);
    std::vector<Tensor> between = reference(sums, inputs);
    const OpDesc pool = make_desc("MaxPool", 1, pool_of(c), between, {false});
    const std::vector<float> expected = reference(pool, between)[0].to_floats();
    EXPECT_EQ(pooled.outputs[0].shape, pool.outputs[0].shape);
    EXPECT_EQ(reference(pooled, inputs)[0].to_floats(), expected);
  }
}

TEST(FusedConvolution, HalvesByWindows) {
  const DeviceTraits traits = fused_traits();
  for (const PooledCase& c : kPooledCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_pooled(c, ElementType::f16, inputs);
    add_constant(desc, inputs, "add", random_tensor({1, desc.outputs[0].shape[1], 1, 1}));
    desc.tail.push_back({"relu"});
    check_op(desc, inputs, kHalf, &traits);
  }
}

TEST(FusedConvolution, BytesByWindows) {
  const DeviceTraits traits = fused_traits();
  bool quantised = false;
  for (const PooledCase& c : kPooledCases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_pooled(c, ElementType::u8, inputs);
    if (quantised) quantize_output(desc, inputs, 0.002f, 255);
    check_op(desc, inputs, quantised ? kOneByte : kExact, &traits);
    quantised = !quantised;
  }
}

// Floats become bytes of 200 levels from -40 on, with and without maxima, by one scale or one for
// each channel.
TEST(FusedConvolution, QuantizesItsData) {
  const DeviceTraits traits = fused_traits();
  bool by_channel = false;
  for (const PooledCase& c : kPooledCases)
    for (const bool maxima : {false, true}) {
      std::vector<Tensor> inputs;
      Attributes given = describe(c.convolution, ElementType::u8, inputs).attributes;
      inputs[0] = random_tensor(c.convolution.data, -2, 2, 1);
      const Shape scales = by_channel ? Shape{1, c.convolution.data[1], 1, 1} : Shape{};
      by_channel = !by_channel;
      inputs.push_back(random_tensor(scales, 40, 70, 2));
      inputs.push_back(random_tensor(scales, 3, 9, 3));
      const Attributes quantize = attributes({{"levels", "200"}, {"lowest", "-40"}});
      add_with_prefix(given, kQuantizePrefix, quantize);
      if (maxima) add_with_prefix(given, kPoolPrefix, pool_of(c));
      const OpDesc desc = make_desc(kFusedConvolution, 1, given, inputs, {false, true, true, true});
      check_op(desc, inputs, kExact, &traits);

      const std::vector<Tensor> floats{inputs[0], inputs[2], inputs[3]};
      const OpDesc bytes = make_desc("Quantize", 1, quantize, floats, {false, true, true});
      std::vector<Tensor> between{reference(bytes, floats)[0], inputs[1]};
      if (maxima) continue;
      const OpDesc plain = make_desc("Convolution", 1, given, between, {false, true});
      EXPECT_EQ(reference(desc, inputs)[0].to_floats(), reference(plain, between)[0].to_floats());
    }
}

TEST(FusedConvolution, TailsThatKeepTheOrder) {
  const auto keeps = [](const std::function<void(OpDesc&, std::vector<Tensor>&)>& add) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_pooled(kPooledCases[0], ElementType::f32, inputs);
    add(desc, inputs);
    return keeps_order(desc);
  };
  EXPECT_TRUE(keeps([](OpDesc& desc, std::vector<Tensor>& inputs) {
    add_constant(desc, inputs, "add", random_tensor({1, 24, 1, 1}));
    desc.tail.push_back({"relu"});
    quantize_output(desc, inputs, 1, 255);
  }));
  EXPECT_FALSE(keeps([](OpDesc& desc, std::vector<Tensor>& inputs) {
    add_constant(desc, inputs, "multiply", random_tensor({1, 24, 1, 1}));
  }));
  EXPECT_FALSE(keeps([](OpDesc& desc, std::vector<Tensor>&) { desc.tail.push_back({"swish"}); }));
  EXPECT_FALSE(keeps([](OpDesc& desc, std::vector<Tensor>& inputs) {
    add_activation(desc, inputs, "add", random_tensor(desc.outputs[0].shape));
  }));
  // A number for each column.
  EXPECT_FALSE(keeps([](OpDesc& desc, std::vector<Tensor>& inputs) {
    add_constant(desc, inputs, "add", random_tensor({1, 1, 1, desc.outputs[0].shape[3]}));
  }));
}

TEST(FusedConvolution, RefusesOtherWindows) {
  const auto refusal = [](const char* kernel, const char* begin) {
    PooledCase c = kPooledCases[0];
    c.kernel = kernel, c.begin = c.end = begin;
    std::vector<Tensor> inputs;
    return refusals(describe_pooled(c, ElementType::f16, inputs), fused_traits());
  };
  EXPECT_TRUE(refusal("4,4", "1,1").contains("maxima other than of 2x2 or 3x3 sums, two apart"));
  EXPECT_TRUE(refusal("3,2", "1,1").contains("maxima other than of 2x2 or 3x3 sums, two apart"));
  EXPECT_TRUE(refusal("2,2", "2,2").contains("maxima of pads alone"));
}

}  // namespace
}  // namespace clinfer::test
