// TopK: order, ties and NaN, the kernel against evaluate(), refusals.
#include <cmath>

#include "tests/kernels/refusals.h"
#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

Attributes topk_settings(const char* axis, const char* mode, const char* sort) {
  return attributes(
      {{"axis", axis}, {"mode", mode}, {"sort", sort}, {"index_element_type", "i32"}});
}

TEST(TopK, Values) {
  const Tensor in = floats({1, 5}, {3, 1, 4, 1, 5});
  const auto top = [&](const char* mode, const char* sort, int64_t k) {
    return run("TopK", 3, topk_settings("1", mode, sort), {in, scalar(k)}, 2);
  };
  EXPECT_EQ(top("max", "value", 3)[0].to_floats(), (std::vector<float>{5, 4, 3}));
  EXPECT_EQ(top("max", "value", 3)[1].to_ints(), (std::vector<int64_t>{4, 2, 0}));
  EXPECT_EQ(top("max", "index", 3)[1].to_ints(), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(top("min", "value", 2)[1].to_ints(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(top("min", "none", 9)[0].shape(), (Shape{1, 5}));
  const std::vector<Tensor> nan =
      run("TopK", 3, topk_settings("0", "min", "value"), {floats({3}, {NAN, 2, 1}), scalar(3)}, 2);
  EXPECT_EQ(nan[1].to_ints(), (std::vector<int64_t>{2, 1, 0}));
  const std::vector<Tensor> integers =
      run("TopK", 3, topk_settings("0", "max", "value"), {ints({3, -7, 9}), scalar(1)}, 2);
  EXPECT_EQ(integers[0].to_ints(), (std::vector<int64_t>{9}));
}

TEST(TopK, Kernel) {
  for (const auto& [axis, k] :
       std::vector<std::pair<const char*, int64_t>>{{"1", 1}, {"1", 5}, {"-1", 3}}) {
    // Few different values give many ties.
    const std::vector<Tensor> inputs{
        random_ints(ElementType::i32, {2, 21, 4, 5}, 0, 9).convert(ElementType::f32), scalar(k)};
    OpDesc desc = make_desc("TopK", 3, topk_settings(axis, "max", k == 5 ? "index" : "value"),
                            inputs, {false, true}, 2);
    check_op(desc, inputs);
    desc.inputs[0] = with_gaps(desc.inputs[0]);
    desc.outputs[1] = TensorDesc::row_major(desc.outputs[1].type, desc.outputs[1].shape);
    check_op(desc, inputs);
  }
  const std::vector<Tensor> integers{
      random_ints(ElementType::i32, {3, 40}, -1000000000, 1000000000), scalar(4)};
  check_op(make_desc("TopK", 3, topk_settings("1", "min", "value"), integers, {false, true}, 2),
           integers);
}

TEST(TopK, LongRowsOnAGpu) {
  const DeviceTraits gpu = gpu_traits();
  for (const auto& [shape, axis, mode] :
       std::vector<std::tuple<Shape, const char*, const char*>>{{{2, 700}, "1", "max"},
                                                                {{1, 513, 3}, "1", "min"},
                                                                {{1, 300}, "1", "max"},
                                                                {{2, 2500}, "1", "max"},
                                                                {{1, 1024}, "1", "min"}}) {
    // Few different values give many ties.
    const Tensor values = random_ints(ElementType::i32, shape, 0, 50);
    for (const ElementType type : {ElementType::f32, ElementType::i32, ElementType::f16}) {
      const std::vector<Tensor> inputs{values.convert(type), scalar(300)};
      const OpDesc desc =
          make_desc("TopK", 3, topk_settings(axis, mode, "value"), inputs, {false, true}, 2);
      for (const char* family : {"topk_select", "topk_ranks"}) {
        check_op(desc, inputs, {}, &gpu, family);
        OpDesc gaps = desc;
        gaps.inputs[0] = with_gaps(desc.inputs[0]);
        check_op(gaps, inputs, {}, &gpu, family);
      }
    }
  }
  std::vector<float> list(400);
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = i % 3 == 0 ? NAN : i % 5 == 0 ? -INFINITY : static_cast<float>(i % 7);
  const std::vector<Tensor> odd{floats({400}, list), scalar(390)};
  for (const char* family : {"topk_select", "topk_ranks"})
    check_op(make_desc("TopK", 3, topk_settings("0", "max", "value"), odd, {false, true}, 2), odd,
             {}, &gpu, family);
  // Values with many different bits, some of which differ in the last one only.
  std::vector<float> fine(1500);
  for (size_t i = 0; i < fine.size(); ++i)
    fine[i] = (i % 2 ? -1.f : 1.f) * (1 + static_cast<float>(i * 7919 % 1500) * 0x1p-23f);
  const std::vector<Tensor> close{floats({1500}, fine), scalar(700)};
  check_op(make_desc("TopK", 3, topk_settings("0", "min", "value"), close, {false, true}, 2), close,
           {}, &gpu, "topk_select");
}

TEST(TopK, LeavesWhatDoesNotFitAWorkGroup) {
  const DeviceTraits gpu = gpu_traits();
  const auto reasons = [&](int64_t length, int64_t selected) {
    const std::vector<Tensor> inputs{counted({length}), scalar(selected)};
    return refusals(
        make_desc("TopK", 3, topk_settings("0", "max", "value"), inputs, {false, true}, 2), gpu);
  };
  EXPECT_TRUE(reasons(3000, 1025).contains("selects more than 1024"));
  EXPECT_TRUE(reasons(16 * 256 + 1, 300).contains("a work-group's registers do not hold a row"));
}

TEST(TopK, Refuses) {
  const Tensor in = counted({2, 3});
  EXPECT_TRUE(says(error_of("TopK", 3, topk_settings("2", "max", "value"), {in, scalar(1)}, 2),
                   "axis 2 is out of range for 2 dimensions"));
  EXPECT_TRUE(says(error_of("TopK", 3, topk_settings("1", "most", "value"), {in, scalar(1)}, 2),
                   "mode \"most\""));
  EXPECT_TRUE(says(error_of("TopK", 3, topk_settings("1", "max", "size"), {in, scalar(1)}, 2),
                   "sort \"size\""));
  EXPECT_TRUE(says(error_of("TopK", 3, topk_settings("1", "max", "value"), {in, scalar(-1)}, 2),
                   "k is -1"));
  EXPECT_TRUE(says(error_of("TopK", 3, topk_settings("1", "max", "value"), {in, scalar(1)}, 2, 2),
                   "k (input 1) must be constant"));
}

}  // namespace
}  // namespace clinfer::test
