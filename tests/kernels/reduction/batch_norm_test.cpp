// BatchNormInference: values checked by hand, refusals, and the family.
#include "tests/kernels/op_test.h"

namespace clinfer::test {
namespace {

TEST(BatchNormInference, ReferenceByHand) {
  const std::vector<Tensor> inputs{Tensor::of<float>(ElementType::f32, {1, 2, 1, 2}, {3, 0, 4, 1}),
                                   Tensor::of<float>(ElementType::f32, {2}, {1, 2}),
                                   Tensor::of<float>(ElementType::f32, {2}, {0, 10}),
                                   Tensor::of<float>(ElementType::f32, {2}, {1, 1}),
                                   Tensor::of<float>(ElementType::f32, {2}, {3, 0})};
  const OpDesc desc = make_desc("BatchNormInference", 5, attributes({{"epsilon", "1"}}), inputs,
                                {false, true, true, true, true});
  EXPECT_EQ(reference(desc, inputs)[0].to_floats(), (std::vector<float>{1, -0.5f, 16, 10}));
}

TEST(BatchNormInference, RefusesParametersOfOtherChannels) {
  const Tensor data = random_tensor({1, 6, 2, 2}), six = random_tensor({6}),
               five = random_tensor({5});
  EXPECT_THROW(make_desc("BatchNormInference", 5, attributes({{"epsilon", "1"}}),
                         {data, six, six, six, five}, {false, true, true, true, true}),
               Error);
}

TEST(BatchNormInference, BothVersions) {
  const Tensor data = random_tensor({2, 5, 3, 4});
  const auto channel = [](float low, unsigned seed) { return random_tensor({5}, low, 2, seed); };
  std::vector<Tensor> inputs{data, channel(-1, 1), channel(-1, 2), channel(-1, 3),
                             channel(0.5f, 4)};
  const Attributes epsilon = attributes({{"epsilon", "1e-3"}});
  check_op(make_desc("BatchNormInference", 5, epsilon, inputs, {false, true, true, true, true}),
           inputs);
  inputs = {inputs[1], inputs[2], data, inputs[3], inputs[4]};
  OpDesc desc =
      make_desc("BatchNormInference", 1, epsilon, inputs, {true, true, false, true, true});
  desc.tail.push_back({"relu"});
  check_op(desc, inputs);
}

}  // namespace
}  // namespace clinfer::test
