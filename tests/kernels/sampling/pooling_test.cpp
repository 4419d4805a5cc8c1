// MaxPool and AvgPool: shapes, values computed by hand, and every family against the reference.
#include "tests/devices.h"
#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

struct PoolCase {
  const char* type;
  int opset;
  Shape data;
  const char *kernel, *strides, *pads_begin, *pads_end;
  const char* rounding = "floor";
  const char* auto_pad = "explicit";
  const char* exclude_pad = "true";
  const char* dilations = nullptr;
};

Attributes attributes_of(const PoolCase& c) {
  Attributes all = attributes({{"kernel", c.kernel},
                               {"strides", c.strides},
                               {"pads_begin", c.pads_begin},
                               {"pads_end", c.pads_end},
                               {"rounding_type", c.rounding},
                               {"auto_pad", c.auto_pad},
                               {"exclude-pad", c.exclude_pad}});
  if (c.dilations) all.set("dilations", c.dilations);
  return all;
}

OpDesc describe_pool(const PoolCase& c, std::vector<Tensor>& inputs, size_t outputs = 1) {
  inputs = {random_tensor(c.data, -1, 1, 1)};
  return make_desc(c.type, c.opset, attributes_of(c), inputs, {}, outputs);
}

Shape pool_shape(const PoolCase& c) {
  std::vector<Tensor> inputs;
  return describe_pool(c, inputs).outputs[0].shape;
}

std::vector<float> pooled(const PoolCase& c, const std::vector<float>& values) {
  const std::vector<Tensor> inputs{Tensor::of<float>(ElementType::f32, c.data, values)};
  return reference(make_desc(c.type, c.opset, attributes_of(c), inputs, {}), inputs)[0].to_floats();
}

// A bias per channel and an activation with the output's shape.
void add_pool_tail(OpDesc& desc, std::vector<Tensor>& inputs) {
  Shape bias(desc.outputs[0].shape.size(), 1);
  bias[1] = desc.outputs[0].shape[1];
  inputs.push_back(random_tensor(bias, -1, 1, 3));
  inputs.push_back(random_tensor(desc.outputs[0].shape, -1, 1, 4));
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, bias));
  desc.inputs.push_back(
      with_gaps(TensorDesc::channels_last(ElementType::f32, desc.outputs[0].shape), 3, 1));
  desc.constants.push_back(inputs[1]);
  desc.constants.push_back({});
  desc.tail = {{"add", 0, 0, 1}, {"relu"}, {"add", 0, 0, 2}};
}

// Runs on the device with its own traits, and with points planned for a GPU.
size_t check_all(const OpDesc& desc, const std::vector<Tensor>& inputs, Tolerance tolerance = {}) {
  const DeviceTraits gpu = gpu_traits();
  return check_op(desc, inputs, tolerance) + check_op(desc, inputs, tolerance, &gpu);
}

TEST(Pooling, Shapes) {
  EXPECT_EQ(pool_shape({"MaxPool", 1, {2, 5, 8, 9}, "3,3", "2,2", "0,0", "0,0"}),
            (Shape{2, 5, 3, 4}));
  EXPECT_EQ(pool_shape({"MaxPool", 1, {2, 5, 8, 9}, "3,3", "2,2", "0,0", "0,0", "ceil"}),
            (Shape{2, 5, 4, 4}));
  EXPECT_EQ(pool_shape({"MaxPool",
                        8,
                        {1, 3, 9, 9},
                        "3,3",
                        "2,2",
                        "0,0",
                        "0,0",
                        "floor",
                        "explicit",
                        "true",
                        "2,2"}),
            (Shape{1, 3, 3, 3}));
  EXPECT_EQ(
      pool_shape({"AvgPool", 1, {1, 3, 5, 6}, "3,3", "2,4", "7,7", "7,7", "floor", "same_lower"}),
      (Shape{1, 3, 3, 2}));
  EXPECT_EQ(pool_shape({"AvgPool", 1, {1, 3, 7, 7}, "3,3", "2,2", "7,7", "7,7", "floor", "valid"}),
            (Shape{1, 3, 3, 3}));
  EXPECT_EQ(pool_shape({"AvgPool", 1, {1, 3, 7}, "3", "2", "1", "1"}), (Shape{1, 3, 4}));
  EXPECT_EQ(pool_shape({"MaxPool", 1, {1, 3, 4, 6, 8}, "2,2,2", "2,2,2", "0,0,0", "0,0,0"}),
            (Shape{1, 3, 2, 3, 4}));
  // 5 elements and an end pad: windows start at 0, 2, 4 and 6, the last one in the end pad.
  EXPECT_EQ(pool_shape({"MaxPool", 14, {1, 1, 5, 5}, "1,1", "3,3", "0,0", "2,2", "ceil"}),
            (Shape{1, 1, 3, 3}));
  EXPECT_EQ(pool_shape({"MaxPool", 14, {1, 1, 5, 5}, "1,1", "3,3", "0,0", "2,2", "ceil_torch"}),
            (Shape{1, 1, 2, 2}));
}

TEST(Pooling, RoundsUpBehindAutomaticPads) {
  EXPECT_EQ(
      pool_shape({"MaxPool", 1, {1, 1, 3, 4}, "1,1", "3,3", "0,0", "0,0", "floor", "same_upper"}),
      (Shape{1, 1, 1, 2}));
  EXPECT_EQ(
      pool_shape({"MaxPool", 1, {1, 1, 3, 4}, "1,1", "3,3", "0,0", "0,0", "ceil", "same_upper"}),
      (Shape{1, 1, 2, 2}));
}

TEST(Pooling, IndicesOnlyWhereTheyAreListed) {
  std::vector<Tensor> inputs;
  const PoolCase c{"MaxPool", 8, {1, 3, 4, 4}, "2,2", "2,2", "0,0", "0,0"};
  EXPECT_EQ(describe_pool(c, inputs).outputs.size(), 1u);
  EXPECT_EQ(describe_pool(c, inputs, 2).outputs.size(), 2u);
  EXPECT_EQ(describe_pool(c, inputs, 2).outputs[1].type, ElementType::i64);
}

TEST(Pooling, RefusesWhatCannotBe) {
  const auto code = [](const PoolCase& c) {
    try {
      pool_shape(c);
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      return error.code();
    }
    ADD_FAILURE() << "accepted";
    return ErrorCode::io;
  };
  EXPECT_EQ(code({"MaxPool", 1, {1, 3, 8, 8}, "9,9", "1,1", "0,0", "0,0"}), ErrorCode::bad_model);
  EXPECT_EQ(code({"MaxPool", 1, {1, 3, 8, 8}, "2,2", "0,1", "0,0", "0,0"}), ErrorCode::bad_model);
  EXPECT_EQ(code({"MaxPool", 1, {1, 3, 8, 8}, "2", "1,1", "0,0", "0,0"}), ErrorCode::bad_model);
  EXPECT_EQ(code({"MaxPool", 1, {1, 3}, "2,2", "1,1", "0,0", "0,0"}), ErrorCode::bad_model);
  EXPECT_EQ(code({"MaxPool", 1, {1, 3, 8, 8}, "2,2", "1,1", "0,0", "0,0", "upwards"}),
            ErrorCode::bad_model);
  EXPECT_EQ(code({"AvgPool", 1, {1, 3, 8, 8}, "2,2", "1,1", "0,0", "0,0", "floor", "sideways"}),
            ErrorCode::bad_model);
  EXPECT_EQ(code({"AvgPool", 1, {1, 3, 8, 8}, "2,2", "1,1", "-1,0", "0,0"}), ErrorCode::bad_model);
  EXPECT_EQ(code({"AvgPool", 1, {1, 3, 8, 8}, "2,9000000000000", "1,1", "0,0", "0,0"}),
            ErrorCode::bad_model);
}

TEST(MaxPool, ReferenceByHand) {
  EXPECT_EQ(
      pooled({"MaxPool", 1, {1, 1, 3, 3}, "2,2", "1,2", "0,1", "0,1"}, {1, 2, 3, 4, 9, 5, 6, 7, 8}),
      (std::vector<float>{4, 9, 6, 9}));
  // Pads are never the maximum.
  EXPECT_EQ(pooled({"MaxPool", 1, {1, 1, 2, 2}, "3,3", "1,1", "1,1", "1,1"}, {-4, -3, -2, -1}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST(MaxPool, IndicesByHand) {
  const std::vector<Tensor> inputs{Tensor::of<float>(ElementType::f32, {1, 2, 2, 4},
                                                     {1, 5, 5, 2, 0, 5, 7, 7,  //
                                                      3, 3, 3, 3, 3, 3, 4, 3})};
  const auto indices = [&](const char* axis) {
    const OpDesc desc = make_desc("MaxPool", 8,
                                  attributes({{"kernel", "2,2"},
                                              {"strides", "2,2"},
                                              {"pads_begin", "0,0"},
                                              {"pads_end", "0,0"},
                                              {"axis", axis}}),
                                  inputs, {}, 2);
    return reference(desc, inputs)[1].to_ints();
  };
  EXPECT_EQ(indices("0"), (std::vector<int64_t>{1, 6, 8, 14}));
  EXPECT_EQ(indices("2"), (std::vector<int64_t>{1, 6, 0, 6}));
  EXPECT_EQ(indices("-1"), (std::vector<int64_t>{1, 2, 0, 2}));
}

TEST(AvgPool, ReferenceByHand) {
  const std::vector<float> data{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(pooled({"AvgPool", 1, {1, 1, 3, 3}, "2,2", "2,2", "1,1", "0,0"}, data),
            (std::vector<float>{1, 2.5f, 5.5f, 7}));
  EXPECT_EQ(
      pooled({"AvgPool", 1, {1, 1, 3, 3}, "2,2", "2,2", "1,1", "0,0", "floor", "explicit", "false"},
             data),
      (std::vector<float>{0.25f, 1.25f, 2.75f, 7}));
  // Without pads, elements added by rounding up do not count; with pads they do.
  EXPECT_EQ(
      pooled({"AvgPool", 1, {1, 1, 3, 3}, "2,2", "2,2", "0,0", "0,0", "ceil", "explicit", "false"},
             data),
      (std::vector<float>{3, 4.5f, 7.5f, 9}));
  EXPECT_EQ(
      pooled({"AvgPool", 1, {1, 1, 2, 2}, "2,2", "2,2", "1,1", "0,0", "ceil", "explicit", "false"},
             {1, 2, 3, 4}),
      (std::vector<float>{0.25f, 0.5f, 0.75f, 1}));
}

TEST(MaxPool, Families) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool({"MaxPool", 1, {2, 21, 12, 19}, "3,3", "2,2", "1,1", "1,1"}, inputs);
  desc.inputs[0] = with_gaps(desc.inputs[0]);
  desc.outputs[0] = with_gaps(desc.outputs[0], 7, 16);
  add_pool_tail(desc, inputs);
  EXPECT_GE(check_all(desc, inputs), 8u);
}

// Large windows at every pixel, as in spatial pyramids.
// Eight pixels for each work-item take an H200 longer than memory (BENCHMARKS.md).
TEST(MaxPool, FewPixelsOfManyChannelsOnHopper) {
  const DeviceTraits traits = hopper("NVIDIA H200");
  const PoolCase cases[] = {{"MaxPool", 8, {8, 64, 112, 112}, "3,3", "2,2", "1,1", "1,1"},
                            {"MaxPool", 8, {32, 256, 20, 20}, "5,5", "1,1", "2,2", "2,2"}};
  for (const PoolCase& c : cases) {
    std::vector<Tensor> inputs;
    OpDesc desc = describe_pool(c, inputs);
    for (TensorDesc* tensor : {&desc.inputs[0], &desc.outputs[0]})
      *tensor = TensorDesc::channels_last(ElementType::f16, tensor->shape);
    for (const KernelFamily* family : find_op(desc.type, desc.opset)->families) {
      if (family->name != "pool_tile") continue;
      EXPECT_EQ(family->reject(desc, traits), "");
      const TuningPoint point = family->heuristic(desc, traits);
      EXPECT_LE(point["TILE_P"], 4);
      EXPECT_GE(point["VECTOR"] * point["TILE_P"], 16) << point["VECTOR"];
    }
  }
}

TEST(MaxPool, StrideOneSame) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool(
      {"MaxPool", 8, {1, 17, 9, 11}, "5,5", "1,1", "0,0", "0,0", "floor", "same_upper"}, inputs);
  check_all(desc, inputs);
}

TEST(MaxPool, DilatedUneven) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool(
      {"MaxPool", 8, {1, 6, 11, 14}, "3,2", "2,3", "1,0", "2,1", "ceil", "explicit", "true", "2,3"},
      inputs);
  check_op(desc, inputs);
}

TEST(MaxPool, Indices) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool({"MaxPool", 8, {2, 5, 8, 9}, "3,3", "2,2", "1,1", "1,1"}, inputs, 2);
  desc.outputs[1].type = ElementType::i32;
  EXPECT_GE(check_op(desc, inputs), 1u);
}

TEST(MaxPool, HalfStorage) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool({"MaxPool", 1, {1, 9, 8, 8}, "2,2", "2,2", "0,0", "0,0"}, inputs);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  EXPECT_GE(check_op(desc, inputs, {1e-3, 1e-3}), 2u);
}

TEST(AvgPool, Families) {
  std::vector<Tensor> inputs;
  for (const char* exclude : {"true", "false"}) {
    OpDesc desc = describe_pool(
        {"AvgPool", 1, {2, 13, 9, 10}, "3,3", "1,1", "1,0", "0,1", "floor", "explicit", exclude},
        inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    add_pool_tail(desc, inputs);
    check_op(desc, inputs);
    desc = describe_pool({"AvgPool",
                          14,
                          {1, 10, 9, 10},
                          "2,3",
                          "3,3",
                          "1,0",
                          "2,1",
                          "ceil_torch",
                          "explicit",
                          exclude},
                         inputs);
    check_op(desc, inputs);
  }
}

TEST(AvgPool, WholeImage) {
  std::vector<Tensor> inputs;
  OpDesc desc =
      describe_pool({"AvgPool", 1, {2, 37, 13, 11}, "13,11", "1,1", "0,0", "0,0"}, inputs);
  desc.outputs[0] = with_gaps(desc.outputs[0], 3, 1);
  add_pool_tail(desc, inputs);
  EXPECT_GE(check_all(desc, inputs), 8u);
}

TEST(AvgPool, WideWindowsWithPads) {
  std::vector<Tensor> inputs;
  const DeviceTraits gpu = gpu_traits();
  OpDesc desc = describe_pool(
      {"AvgPool", 1, {1, 6, 14, 9}, "9,7", "4,2", "2,3", "4,3", "ceil", "explicit", "false"},
      inputs);
  EXPECT_GE(check_op(desc, inputs, {}, &gpu), 3u);
  desc = describe_pool({"MaxPool", 1, {1, 6, 14, 9}, "9,7", "4,2", "2,3", "4,3"}, inputs);
  EXPECT_GE(check_op(desc, inputs, {}, &gpu), 3u);
}

TEST(Pooling, OneAndThreeDimensions) {
  std::vector<Tensor> inputs;
  OpDesc desc = describe_pool({"MaxPool", 1, {2, 5, 17}, "3", "2", "1", "1"}, inputs);
  add_pool_tail(desc, inputs);
  desc.inputs[2] = TensorDesc::row_major(ElementType::f32, inputs[2].shape());
  check_op(desc, inputs);  // row-major: pixels are adjacent, not channels
  desc = describe_pool({"AvgPool", 1, {2, 5, 4, 6, 7}, "2,3,3", "1,2,1", "0,1,1", "1,1,1"}, inputs);
  EXPECT_GE(check_all(desc, inputs), 4u);
}

}  // namespace
}  // namespace clinfer::test
