// Reorder: layouts and storage types.
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

// From one layout to another, with gaps on both sides, for a pair of element types.
void check(const Tensor& values, const TensorDesc& from, const TensorDesc& to, Tolerance tolerance = {0, 0}) {
  OpDesc desc = make_desc("Reorder", 1, {}, {values}, {});
  desc.inputs[0] = from;
  desc.outputs[0] = to;
  check_op(desc, {values}, tolerance);
}

TEST(Reorder, BetweenPlanesAndChannelsLast) {
  const Tensor values = random_tensor({2, 3, 5, 7});
  const TensorDesc planes = TensorDesc::row_major(ElementType::f32, values.shape());
  const TensorDesc last = TensorDesc::channels_last(ElementType::f32, values.shape());
  check(values, planes, last);
  check(values, last, planes);
  check(values, with_gaps(last), with_gaps(planes));
}

TEST(Reorder, ConvertsStorageTypes) {
  const Tensor values = random_tensor({1, 5, 4, 3}, -300, 300);
  const TensorDesc planes = TensorDesc::row_major(ElementType::f32, values.shape());
  const TensorDesc halves = TensorDesc::channels_last(ElementType::f16, values.shape());
  check(values, planes, with_gaps(halves), {0, 1e-3});
  check(values, halves, planes);
  const Tensor ints = random_ints(ElementType::i32, {4, 9}, -1000, 1000);
  TensorDesc from = TensorDesc::row_major(ElementType::i32, ints.shape());
  check(ints, from, with_gaps(from));
  TensorDesc to = from;
  to.type = ElementType::f32;
  check(ints, from, to);
}

TEST(Reorder, ManyDimensions) {
  const Tensor values = random_tensor({2, 3, 2, 3, 2, 3});
  TensorDesc from = TensorDesc::row_major(ElementType::f32, values.shape());
  TensorDesc to = from;
  std::swap(to.strides[0], to.strides[4]);  // both of size 2
  std::swap(to.strides[1], to.strides[3]);
  check(values, from, to);
}

}  // namespace
}  // namespace clinfer::test
