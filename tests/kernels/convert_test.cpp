// Convert: values and kernels.
#include <gtest/gtest.h>

#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

TEST(Convert, TruncatesTowardsZero) {
  const Tensor x = Tensor::of(ElementType::f32, {4}, std::vector<float>{-1.7f, -0.2f, 0.9f, 2.5f});
  const OpDesc ints = make_desc("Convert", 1, attributes({{"destination_type", "i32"}}), {x}, {});
  EXPECT_EQ(reference(ints, {x})[0].to_ints(), (std::vector<int64_t>{-1, 0, 0, 2}));
  check_op(ints, {x});
  const OpDesc flags = make_desc("Convert", 1, attributes({{"destination_type", "boolean"}}), {x}, {});
  EXPECT_EQ(reference(flags, {x})[0].to_ints(), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(Convert, IntegersToFloats) {
  const Tensor x = random_ints(ElementType::i32, {2, 3, 4, 5}, -100, 100);
  OpDesc desc = make_desc("Convert", 1, attributes({{"destination_type", "f32"}}), {x}, {});
  desc.outputs[0] = with_gaps(desc.outputs[0]);
  check_op(desc, {x});
}

TEST(Convert, RefusesUnknownTypes) {
  EXPECT_THROW(make_desc("Convert", 1, attributes({{"destination_type", "f8"}}), {random_tensor({1})}, {}), Error);
}

}  // namespace
}  // namespace clinfer::test
