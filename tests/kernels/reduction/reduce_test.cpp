// Reductions: values computed by hand, all axes and layouts, integers and booleans, tails.
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::attributes;
using test::check_op;
using test::make_desc;
using test::random_ints;
using test::random_tensor;

Tensor axes(const std::vector<int32_t>& values) {
  return Tensor::of(ElementType::i32, {static_cast<int64_t>(values.size())}, values);
}

OpDesc reduce(const char* type, const Tensor& x, const Tensor& along, const char* keep = "true") {
  return make_desc(type, 4, attributes({{"keep_dims", keep}}), {x, along}, {false, true});
}

TEST(Reduce, HandValues) {
  const Tensor x = Tensor::of(ElementType::f32, {2, 3}, std::vector<float>{1, -2, 3, 4, 0, -6});
  const auto run = [&](const char* type, int32_t axis) {
    const Tensor along = axes({axis});
    return test::reference(reduce(type, x, along), {x, along})[0].to_floats();
  };
  EXPECT_EQ(run("ReduceMean", 0), (std::vector<float>{2.5f, -1, -1.5f}));
  EXPECT_EQ(run("ReduceSum", 1), (std::vector<float>{2, -2}));
  EXPECT_EQ(run("ReduceMax", -1), (std::vector<float>{3, 4}));
  EXPECT_EQ(run("ReduceMin", 1), (std::vector<float>{-2, -6}));
  EXPECT_EQ(run("ReduceProd", 1), (std::vector<float>{-6, 0}));
  EXPECT_EQ(run("ReduceL1", 1), (std::vector<float>{6, 10}));
  EXPECT_NEAR(run("ReduceL2", 1)[0], 3.7416575f, 1e-6);
  EXPECT_EQ(reduce("ReduceSum", x, axes({0}), "false").outputs[0].shape, (Shape{3}));
  EXPECT_EQ(reduce("ReduceSum", x, axes({0, 1}), "false").outputs[0].shape, (Shape{}));
  EXPECT_THROW(reduce("ReduceSum", x, axes({2})), Error);
}

TEST(Reduce, IntegersSaturate) {
  const int64_t large = int64_t{1} << 40;
  const Tensor x =
      Tensor::of(ElementType::i64, {2, 2}, std::vector<int64_t>{large, large, -large, large});
  const Tensor along = axes({1});
  EXPECT_EQ(test::reference(reduce("ReduceProd", x, along), {x, along})[0].to_ints(),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min()}));
}

TEST(Reduce, AxesAndLayouts) {
  const Tensor x = random_tensor({2, 20, 9, 11});
  const Tensor spatial = axes({2, 3}), channel = axes({1}), all = axes({0, 1, 2, 3}),
               odd = axes({0, -2}), none = axes({});
  for (const Tensor& along : {spatial, channel, all, odd, none}) {
    check_op(reduce("ReduceMean", x, along), {x, along});
    check_op(reduce("ReduceMax", x, along, "false"), {x, along}, {0, 0});
  }
  OpDesc desc = reduce("ReduceL2", x, spatial);
  desc.inputs[0] = test::with_gaps(desc.inputs[0]);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, {x, spatial}, {1e-3, 1e-3});
  const Tensor rows = random_tensor({7, 133}), last = axes({1});
  check_op(reduce("ReduceL1", rows, last), {rows, last});
}

TEST(Reduce, IntegersAndBooleans) {
  const Tensor x = random_ints(ElementType::i32, {3, 5, 4}, -9, 9), along = axes({1});
  check_op(reduce("ReduceProd", x, along), {x, along}, {0, 0});
  check_op(reduce("ReduceMin", x, along), {x, along}, {0, 0});
  const Tensor b = random_ints(ElementType::boolean, {3, 3, 4}, 0, 1);
  check_op(reduce("ReduceLogicalAnd", b, along), {b, along}, {0, 0});
  check_op(reduce("ReduceLogicalOr", b, along), {b, along}, {0, 0});
}

TEST(Reduce, Tail) {
  const Tensor x = random_tensor({2, 20, 5, 5}), along = axes({2, 3}),
               bias = random_tensor({1, 20, 1, 1}, -1, 1, 2);
  OpDesc desc = reduce("ReduceMean", x, along);
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, bias.shape()));
  desc.constants.push_back(bias);
  desc.tail = {{"add", 0, 0, 2}, {"sigmoid"}};
  check_op(desc, {x, along, bias});
}

// Short sums of many outputs, as of the points that deformable attention samples: a work-item has a
// sum, and a work-group many of them.
TEST(Reduce, ShortSumsOnAGpu) {
  const DeviceTraits gpu = test::gpu_traits();
  for (const Shape& shape : {Shape{2, 65, 3}, Shape{1, 64, 12}, Shape{40, 130, 5}}) {
    const Tensor x = random_tensor(shape), last = axes({2});
    OpDesc desc = reduce("ReduceSum", x, last);
    check_op(desc, {x, last}, {}, &gpu);
    desc.inputs[0] = test::with_gaps(desc.inputs[0]);
    check_op(desc, {x, last}, {}, &gpu);
    const KernelFamily& family = *find_op("ReduceSum", 1)->families.at(0);
    const TuningPoint point = family.heuristic(desc, gpu);
    EXPECT_EQ(point["GROUP"], 1);
    EXPECT_EQ(family.plan(desc, gpu, point).launches[0].local[0], 64u);
  }
}

// Vectors of a GPU are read at once where all of them are aligned.
TEST(Reduce, AlignedVectorsOfGpus) {
  const DeviceTraits gpu = test::gpu_traits();
  const Tensor x = random_tensor({2, 40, 6, 7}), across = axes({2, 3}), along = axes({1});
  for (const ElementType type : {ElementType::f32, ElementType::f16})
    for (const bool gaps : {false, true})
      for (const Tensor& over : {across, along}) {
        OpDesc desc = reduce("ReduceMean", x, over);
        desc.inputs[0] = TensorDesc::channels_last(type, x.shape());
        desc.outputs[0].type = type;
        if (gaps) desc.inputs[0] = test::with_gaps(desc.inputs[0]);
        check_op(desc, {x, over}, {1e-5, type == ElementType::f16 ? 1e-3 : 1e-4}, &gpu);
        if (over.elements() == 1) continue;
        const KernelFamily& family = *find_op("ReduceMean", 1)->families.at(0);
        EXPECT_EQ(family.heuristic(desc, gpu)["V"], gaps ? 4 : 8);
      }
}

}  // namespace
}  // namespace clinfer
