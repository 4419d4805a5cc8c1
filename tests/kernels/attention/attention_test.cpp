// Attention: values computed by hand, and each family against the reference: sizes of heads, masks, biases,
// views, rows that see nothing, and random shapes.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "tests/kernels/convolution_case.h"
#include "tests/kernels/op_test.h"
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

constexpr Tolerance kFloats{2e-5, 2e-4}, kHalves{2e-3, 4e-3};
// A float next to -65504 is a step of 0.004 from the next one.
constexpr Tolerance kHidden{1e-2, 1e-2};

struct AttentionCase {
  Shape query, key, value;
  Shape bias = {}, mask = {};
  bool constant_bias = false, causal = false;
  int heads = 0;
};

// Tensors of the products of tokens, [batch, tokens, heads, size], are read as [batch, heads, tokens, size].
TensorDesc by_tokens(const TensorDesc& desc, ElementType type) {
  const size_t rank = desc.shape.size();
  if (rank < 3) return TensorDesc::row_major(type, desc.shape);
  Shape shape = desc.shape;
  std::swap(shape[rank - 2], shape[rank - 3]);
  TensorDesc turned = TensorDesc::row_major(type, shape);
  std::swap(turned.shape[rank - 2], turned.shape[rank - 3]);
  std::swap(turned.strides[rank - 2], turned.strides[rank - 3]);
  return turned;
}

OpDesc describe_attention(const AttentionCase& c, ElementType type, bool views,
                          std::vector<Tensor>& inputs, unsigned seed = 1) {
  inputs = {random_tensor(c.query, -2, 2, seed), random_tensor(c.key, -2, 2, seed + 1),
            random_tensor(c.value, -1, 1, seed + 2)};
  Attributes attributes;
  attributes.set("scale", "0.375");
  attributes.set("causal", c.causal ? "true" : "false");
  attributes.set("heads", std::to_string(c.heads));
  std::vector<bool> constant{false, false, false};
  if (!c.bias.empty()) {
    inputs.push_back(random_tensor(c.bias, -3, 3, seed + 3));
    constant.push_back(c.constant_bias);
  }
  if (!c.mask.empty()) {
    inputs.push_back(random_ints(ElementType::u8, c.mask, 0, 1, seed + 4));
    constant.push_back(false);
    attributes.set("masked", "-65504");
  }
  OpDesc desc = make_desc("Attention", 1, attributes, inputs, constant);
  desc.outputs[0] = TensorDesc::row_major(type, desc.outputs[0].shape);
  for (size_t i = 0; i < 3; ++i) {
    desc.inputs[i] = TensorDesc::row_major(type, desc.inputs[i].shape);
    if (views) desc.inputs[i] = by_tokens(desc.inputs[i], type);
  }
  if (!c.bias.empty() && !c.constant_bias) desc.inputs[3].type = type;
  return desc;
}

bool takes_halves(const AttentionCase& c) {
  return c.query.back() % 8 == 0 && c.value.back() % 8 == 0 && c.query.back() <= 128 &&
         c.value.back() <= 128;
}

// By all families that the device, a GPU and one with matrix instructions have. With views: halves and
// floats alike.
void check_attention(const AttentionCase& c, bool views = false) {
  std::vector<Tensor> inputs;
  const OpDesc desc = describe_attention(c, ElementType::f32, views, inputs);
  const DeviceTraits gpu = gpu_traits(), matrix = matrix_traits();
  if (device_traits().is_cpu) check_op(desc, inputs, kFloats, nullptr, "attention_rows");
  check_op(desc, inputs, kFloats, &gpu, "attention_tiles");
  const OpDesc halves = describe_attention(c, ElementType::f16, views, inputs);
  if (takes_halves(c)) check_op(halves, inputs, kHalves, &matrix, "attention_mma");
}

std::vector<float> attend_rows(const Attributes& how, const std::vector<Tensor>& more) {
  std::vector<Tensor> inputs{floats({1, 2, 1}, {0, 1}), floats({1, 3, 1}, {0, 1, 2}),
                             floats({1, 3, 1}, {1, 10, 100})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return run("Attention", 1, how, inputs, 1, 3)[0].to_floats();
}

TEST(Attention, WeighsValuesByScores) {
  const float a = 1, b = std::exp(1.0f), c = std::exp(2.0f);
  const std::vector<float> plain = attend_rows({}, {});
  EXPECT_NEAR(plain[0], 37, 1e-4);
  EXPECT_NEAR(plain[1], (a + 10 * b + 100 * c) / (a + b + c), 1e-3);
  EXPECT_NEAR(attend_rows(attributes({{"scale", "2"}}), {})[1],
              (a + 10 * c + 100 * c * c) / (a + c + c * c), 1e-3);
  const std::vector<float> causal = attend_rows(attributes({{"causal", "true"}}), {});
  EXPECT_NEAR(causal[0], 1, 1e-5);
  EXPECT_NEAR(causal[1], (a + 10 * b) / (a + b), 1e-4);
}

TEST(Attention, RowsThatSeeNothing) {
  const float never = -std::numeric_limits<float>::infinity();
  const Tensor mask = Tensor::of(ElementType::u8, {2, 3}, std::vector<int64_t>{1, 0, 1, 0, 0, 0});
  const Attributes masked = attributes({{"masked", "-65504"}});
  EXPECT_NEAR(attend_rows(masked, {mask})[0], 50.5f, 1e-4);
  EXPECT_NEAR(attend_rows(masked, {mask})[1], 37, 1e-4) << "equal scores have equal weights";
  const Tensor hidden = floats({2, 3}, {never, 0, never, never, never, never});
  EXPECT_EQ(attend_rows({}, {hidden})[0], 10);
  EXPECT_TRUE(std::isnan(attend_rows({}, {hidden})[1])) << "0 / 0";
  EXPECT_NEAR(attend_rows(masked, {hidden, mask})[1], 37, 1e-4);
}

TEST(Attention, Refuses) {
  const auto refused = [](const Attributes& how, std::vector<Shape> shapes) {
    std::vector<Tensor> inputs;
    for (Shape& shape : shapes) inputs.push_back(random_tensor(std::move(shape)));
    return error_of("Attention", 1, how, inputs);
  };
  EXPECT_TRUE(says(refused({}, {{1, 2, 3}, {1, 2, 4}, {1, 2, 3}}),
                   "query [1,2,3], key [1,2,4] and value [1,2,3] do not fit"));
  EXPECT_TRUE(says(refused({}, {{2, 2, 3}, {3, 2, 3}, {1, 2, 3}}), "does not fit"));
  EXPECT_TRUE(says(refused({}, {{2, 3}, {2, 3}, {2, 3}, {3, 2}}), "does not fit the scores [2,2]"));
  EXPECT_TRUE(says(refused(attributes({{"heads", "1"}}), {{2, 3}, {2, 3}, {2, 3}}), "heads=1"));
  EXPECT_TRUE(says(refused(attributes({{"masked", "0"}}), {{2, 3}, {2, 3}, {2, 3}}), "mask"));
}

// Each family says which heads it leaves to others.
TEST(Attention, FamiliesSayWhatTheyLeave) {
  std::vector<Tensor> inputs;
  const auto why = [&](const AttentionCase& c, const std::string& name,
                       const DeviceTraits& traits) {
    const OpDesc desc = describe_attention(c, ElementType::f16, false, inputs);
    for (const KernelFamily* family : find_op("Attention", 1)->families)
      if (family->name == name) return family->reject(desc, traits);
    return std::string("no such family");
  };
  const AttentionCase wide{{2, 5, 264}, {2, 7, 264}, {2, 7, 264}},
      odd{{2, 5, 20}, {2, 7, 20}, {2, 7, 20}}, large{{2, 5, 136}, {2, 7, 136}, {2, 7, 136}};
  EXPECT_EQ(why(wide, "attention_tiles", gpu_traits()), "heads of more than 256 channels");
  EXPECT_EQ(why(large, "attention_tiles", gpu_traits()), "");
  EXPECT_EQ(why(large, "attention_mma", matrix_traits()), "heads of more than 128 channels");
  EXPECT_NE(why(odd, "attention_mma", matrix_traits()).find("16 bytes"), std::string::npos);
  EXPECT_EQ(why(odd, "attention_rows", gpu_traits()), "the device is no CPU");
}

TEST(Attention, SizesOfHeads) {
  for (const int64_t size : {16, 40, 64, 128, 256}) {
    SCOPED_TRACE(size);
    check_attention({{2, 21, size}, {2, 35, size}, {2, 35, size}}, true);
  }
  check_attention({{1, 3, 9, 20}, {1, 3, 13, 20}, {1, 3, 13, 7}});
}

TEST(Attention, ViewsOfTokens) {
  AttentionCase c{{2, 3, 50, 32}, {2, 3, 50, 32}, {2, 3, 50, 32}};
  c.heads = 1;
  check_attention(c, true);
  c = {{2, 2, 3, 17, 16}, {2, 2, 1, 70, 16}, {2, 2, 1, 70, 16}};  // grouped queries
  c.heads = 2;
  check_attention(c);
}

TEST(Attention, BiasesAndMasks) {
  AttentionCase c{{2, 3, 18, 16}, {2, 3, 37, 16}, {2, 3, 37, 24}};
  c.bias = {1, 3, 18, 37};
  check_attention(c);
  c.constant_bias = true;
  check_attention(c);
  c.bias = {2, 1, 1, 37};
  check_attention(c);
  c.mask = {2, 1, 18, 37};
  c.bias = {3, 18, 1};
  check_attention(c);
}

TEST(Attention, Causal) {
  AttentionCase c{{2, 2, 70, 16}, {2, 2, 70, 16}, {2, 2, 70, 16}};
  c.causal = true;
  c.heads = 1;
  check_attention(c, true);
  c = {{1, 40, 32}, {1, 20, 32}, {1, 20, 32}};
  c.causal = true;
  check_attention(c);
}

// Masks of the least float, of which all of a row's scores become equal, and of which some are hidden.
TEST(Attention, HiddenRows) {
  for (const float low : {-65504.0f, std::numeric_limits<float>::lowest()}) {
    AttentionCase c{{1, 2, 6, 16}, {1, 2, 70, 16}, {1, 2, 70, 16}};
    c.bias = {6, 70};
    c.constant_bias = true;
    std::vector<Tensor> inputs;
    OpDesc desc = describe_attention(c, ElementType::f32, false, inputs);
    float* const bias = inputs[3].mutable_data<float>();
    for (int i = 0; i < 6 * 70; ++i)
      bias[i] = i < 2 * 70 || (i < 4 * 70 && i % 70 < 66) || i % 3 == 0 ? low : 0.5f;
    desc.constants[3] = inputs[3];
    const DeviceTraits gpu = gpu_traits(), matrix = matrix_traits();
    if (device_traits().is_cpu) check_op(desc, inputs, kHidden, nullptr, "attention_rows");
    check_op(desc, inputs, kHidden, &gpu, "attention_tiles");
    for (size_t i = 0; i < 3; ++i) desc.inputs[i].type = ElementType::f16;
    desc.outputs[0].type = ElementType::f16;
    check_op(desc, inputs, kHidden, &matrix, "attention_mma");
  }
}

// Shapes, masks and sizes at random.
TEST(Attention, RandomCases) {
  std::mt19937 random(63);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const int rounds = std::getenv("CLINFER_TEST_ALL") ? 40 : 4;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const int64_t batch = draw(1, 2), heads = draw(1, 3), queries = draw(1, 90), keys = draw(1, 90),
                  size = draw(2, 12) * (round % 3 == 0 ? 5 : 8),
                  values = round % 2 ? size : draw(1, 6) * 8;
    AttentionCase c{{batch, heads, queries, size},
                    {batch, draw(0, 1) ? heads : 1, keys, size},
                    {1, heads, keys, values}};
    if (draw(0, 1)) c.bias = {draw(0, 1) ? batch : 1, 1, draw(0, 1) ? queries : 1, keys};
    if (draw(0, 3) == 0) c.mask = {1, heads, queries, keys};
    c.constant_bias = draw(0, 1);
    c.causal = draw(0, 3) == 0;
    c.heads = static_cast<int>(draw(0, 2));
    check_attention(c, draw(0, 1));
  }
}

}  // namespace
}  // namespace clinfer::test
