// Deformable attention: values by hand, the kernel against evaluate(), refusals.
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

struct Level {
  int64_t height, width, points;
};

std::vector<Tensor> random_inputs(int64_t batch, int64_t groups, int64_t queries, int64_t channels,
                                  const std::vector<Level>& levels) {
  std::vector<Tensor> inputs;
  int64_t points = 0;
  for (const Level& l : levels) {
    inputs.push_back(random_tensor({batch, groups, l.height, l.width, channels}, -1, 1,
                                   static_cast<unsigned>(inputs.size())));
    points += l.points;
  }
  for (const Level& l : levels)
    inputs.push_back(random_tensor({batch, groups, queries, l.points, 2}, -1.6f, 1.6f,
                                   static_cast<unsigned>(inputs.size())));
  inputs.push_back(random_tensor({batch, groups, queries, points}, 0, 1, 99));
  return inputs;
}

OpDesc described(const std::vector<Tensor>& inputs, const Attributes& how = {}) {
  OpDesc desc = make_desc("DeformableAttention", 1, how, inputs, {});
  for (size_t i = 0; i < inputs.size(); ++i)
    desc.inputs[i] = TensorDesc::row_major(inputs[i].type(), inputs[i].shape());
  desc.outputs[0] = TensorDesc::row_major(ElementType::f32, desc.outputs[0].shape);
  return desc;
}

// Maps 1 2 3 4 and 10 20: half of the middle of the first, and twice the left pixel of the second.
TEST(DeformableAttention, Values) {
  const std::vector<float> out =
      run("DeformableAttention", 1, sampling("bilinear", "zeros", "false"),
          {floats({1, 1, 1, 4, 1}, {1, 2, 3, 4}), floats({1, 1, 1, 2, 1}, {10, 20}),
           floats({1, 1, 1, 2, 2}, {0, 0, 5, 0}), floats({1, 1, 1, 1, 2}, {-0.5f, 0}),
           floats({1, 1, 1, 3}, {0.5f, 7, 2})},
          1, 5)[0]
          .to_floats();
  EXPECT_FLOAT_EQ(out[0], 0.5f * 2.5f + 2 * 10) << "the second point lies outside";
}

TEST(DeformableAttention, Kernel) {
  const std::vector<Level> three{{5, 4, 2}, {3, 6, 3}, {1, 2, 1}};
  for (const int64_t channels : {1, 6, 8, 32, 64, 80}) {
    SCOPED_TRACE(channels);
    const std::vector<Tensor> inputs = random_inputs(2, 3, 7, channels, three);
    check_op(described(inputs), inputs);
    const DeviceTraits gpu = gpu_traits();
    check_op(described(inputs), inputs, {}, &gpu);
  }
  const std::vector<std::vector<Level>> numbers{
      {{4, 4, 4}},
      {{4, 4, 4}, {2, 3, 1}},
      {{4, 4, 1}, {3, 2, 1}, {2, 2, 2}, {1, 1, 3}},
      {{4, 4, 1}, {3, 2, 1}, {2, 2, 2}, {1, 1, 3}, {5, 1, 2}}};
  for (const std::vector<Level>& levels : numbers) {
    SCOPED_TRACE(levels.size());
    const std::vector<Tensor> inputs = random_inputs(1, 2, 5, 16, levels);
    check_op(described(inputs), inputs);
  }
}

TEST(DeformableAttention, WaysToSample) {
  const std::vector<Tensor> inputs = random_inputs(1, 2, 5, 16, {{5, 4, 2}, {3, 2, 3}});
  for (const char* mode : {"nearest", "bilinear", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"}) {
      SCOPED_TRACE(std::string(mode) + " " + padding);
      check_op(described(inputs, sampling(mode, padding, padding[0] == 'b' ? "true" : "false")),
               inputs);
    }
}

// Halves, with coordinates in f32; and operands as views of products of tokens.
TEST(DeformableAttention, TypesAndViews) {
  const std::vector<Tensor> inputs = random_inputs(2, 2, 5, 16, {{5, 4, 2}, {3, 2, 3}});
  OpDesc halves = described(inputs);
  for (const size_t i : {0, 1, 4}) halves.inputs[i].type = ElementType::f16;
  halves.outputs[0].type = ElementType::f16;
  check_op(halves, inputs, {2e-3, 4e-3});

  OpDesc views = described(inputs);
  for (size_t i = 0; i < 2; ++i) {  // [batch, height, width, groups, channels]
    const Shape& s = views.inputs[i].shape;
    const TensorDesc tokens =
        TensorDesc::row_major(ElementType::f32, {s[0], s[2], s[3], s[1], s[4]});
    views.inputs[i].strides = {tokens.strides[0], tokens.strides[3], tokens.strides[1],
                               tokens.strides[2], 1};
  }
  for (size_t i = 2; i < 5; ++i) views.inputs[i] = with_gaps(views.inputs[i]);
  views.outputs[0] = with_gaps(views.outputs[0]);
  check_op(views, inputs);
}

TEST(DeformableAttention, Refuses) {
  const auto refused = [](std::vector<Shape> shapes, const Attributes& attributes = {}) {
    std::vector<Tensor> inputs;
    for (Shape& shape : shapes) inputs.push_back(random_tensor(std::move(shape)));
    return error_of("DeformableAttention", 1, attributes, inputs, 1, inputs.size());
  };
  const Shape map{1, 2, 4, 4, 8}, grid{1, 2, 5, 3, 2};
  EXPECT_EQ(refused({map, grid, {1, 2, 5, 3}}), "");
  EXPECT_TRUE(says(refused({map, grid}), "it has 2 inputs"));
  EXPECT_TRUE(says(refused({map, grid, {1, 2, 5, 4}}), "the weights [1,2,5,4] do not fit"));
  EXPECT_TRUE(says(refused({map, {1, 2, 5, 3, 3}, {1, 2, 5, 3}}),
                   "the grid [1,2,5,3,3] does not fit the map [1,2,4,4,8]"));
  EXPECT_TRUE(says(refused({map, {1, 1, 4, 4, 8}, grid, grid, {1, 2, 5, 6}}), "does not fit"));
  EXPECT_TRUE(says(refused({map, grid, {1, 2, 5, 3}}, sampling("linear", "zeros", "false")),
                   "unknown mode \"linear\""));

  std::vector<Tensor> inputs = random_inputs(1, 1, 2, 4, {{2, 2, 1}});
  OpDesc apart = described(inputs);
  apart.inputs[0].strides = {16, 16, 2, 1, 4};
  const KernelFamily& family = *find_op("DeformableAttention", 1)->families[0];
  EXPECT_EQ(family.reject(apart, gpu_traits()), "the channels of a map are not adjacent in memory");
  inputs = random_inputs(1, 1, 2, 4, std::vector<Level>(6, {2, 2, 1}));
  EXPECT_EQ(family.reject(described(inputs), gpu_traits()), "more than 5 maps");
}

}  // namespace
}  // namespace clinfer::test
