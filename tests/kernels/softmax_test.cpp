// SoftMax and LogSoftmax: hand values, every axis, short and long rows.
#include <cmath>

#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::attributes;
using test::check_op;
using test::make_desc;
using test::random_tensor;

TEST(Softmax, HandValues) {
  const Tensor x = Tensor::of(ElementType::f32, {1, 3}, std::vector<float>{1000, 1001, 999});
  const std::vector<float> p = test::reference(make_desc("SoftMax", 1, attributes({{"axis", "1"}}), {x}, {}), {x})[0].to_floats();
  EXPECT_NEAR(p[0], 0.24472847f, 1e-6);
  EXPECT_NEAR(p[1], 0.66524096f, 1e-6);
  const std::vector<float> l = test::reference(make_desc("LogSoftmax", 5, attributes({{"axis", "-1"}}), {x}, {}), {x})[0].to_floats();
  EXPECT_NEAR(l[2], std::log(0.09003057f), 1e-5);
  EXPECT_THROW(make_desc("SoftMax", 8, attributes({{"axis", "2"}}), {x}, {}), Error);
}

TEST(Softmax, EveryAxis) {
  const Tensor x = random_tensor({2, 13, 5, 19}, -8, 8);
  for (const char* axis : {"0", "1", "2", "-1"}) check_op(make_desc("SoftMax", 8, attributes({{"axis", axis}}), {x}, {}), {x});
}

TEST(Softmax, RowsOfAllLengths) {
  for (const Shape& shape : {Shape{1, 301, 2}, Shape{7, 91}, Shape{1, 1000}, Shape{17}}) {
    const Tensor x = random_tensor(shape, -8, 8);
    check_op(make_desc("SoftMax", 8, attributes({{"axis", "-1"}}), {x}, {}), {x});
  }
  const Tensor x = random_tensor({3, 40}, -8, 8);
  check_op(make_desc("LogSoftmax", 5, attributes({{"axis", "1"}}), {x}, {}), {x});
  OpDesc desc = make_desc("SoftMax", 1, attributes({{"axis", "1"}}), {x}, {});
  desc.inputs[0] = test::with_gaps(desc.inputs[0]);
  desc.outputs[0] = test::with_gaps(desc.outputs[0], 2, 6);
  desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  check_op(desc, {x}, {1e-3, 1e-3});
}

}  // namespace
}  // namespace clinfer
