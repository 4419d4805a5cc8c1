// ScaledDotProductAttention: values computed by hand, masks, refusals.
#include <cmath>

#include "tests/kernels/view_test.h"
#include "tests/says.h"

namespace clinfer::test {
namespace {

const Attributes kPlainAttention = attributes({{"causal", "false"}});
const Attributes kCausal = attributes({{"causal", "true"}});

// Two queries over three keys of one number each; the values are 1, 10, 100.
std::vector<float> attend(const Attributes& how, std::vector<Tensor> more) {
  std::vector<Tensor> inputs{floats({1, 2, 1}, {0, 1}), floats({1, 3, 1}, {0, 1, 2}),
                             floats({1, 3, 1}, {1, 10, 100})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return run("ScaledDotProductAttention", 13, how, inputs, 1, 3)[0].to_floats();
}

TEST(ScaledDotProduct, WeighsValuesByScores) {
  const std::vector<float> plain = attend(kPlainAttention, {});
  EXPECT_NEAR(plain[0], 37, 1e-4);
  const float a = 1, b = std::exp(1.0f), c = std::exp(2.0f);
  EXPECT_NEAR(plain[1], (a + 10 * b + 100 * c) / (a + b + c), 1e-3);
  const std::vector<float> causal = attend(kCausal, {});
  EXPECT_NEAR(causal[0], 1, 1e-5);
  EXPECT_NEAR(causal[1], (a + 10 * b) / (a + b), 1e-4);
}

TEST(ScaledDotProduct, TakesMasksAndScale) {
  const Tensor allowed = Tensor::of(ElementType::boolean, {1, 3}, std::vector<int64_t>{1, 0, 1});
  EXPECT_NEAR(attend(kPlainAttention, {allowed})[0], 50.5f, 1e-4);
  const Tensor added = floats({2, 3}, {0, 0, -100, -100, -100, 0});
  EXPECT_NEAR(attend(kPlainAttention, {added})[0], 5.5f, 1e-4);
  EXPECT_NEAR(attend(kPlainAttention, {added})[1], 100, 1e-3);
  const Tensor none = floats({}, {0});
  EXPECT_NEAR(attend(kPlainAttention, {none, floats({1}, {0})})[1], 37, 1e-4);
}

TEST(ScaledDotProduct, Refuses) {
  const auto refused = [](Shape q, Shape k, Shape v) {
    return error_of(
        "ScaledDotProductAttention", 13, kPlainAttention,
        {random_tensor(std::move(q)), random_tensor(std::move(k)), random_tensor(std::move(v))});
  };
  EXPECT_TRUE(says(refused({1, 2, 3}, {1, 2, 4}, {1, 2, 3}),
                   "query [1,2,3], key [1,2,4] and value [1,2,3] do not fit"));
  EXPECT_TRUE(says(refused({1, 2, 3}, {1, 4, 3}, {1, 2, 3}),
                   "query [1,2,3], key [1,4,3] and value [1,2,3] do not fit"));
  EXPECT_TRUE(says(refused({3}, {3}, {3}),
                   "query, key or value has the shape [3], it must have 2 to 6 dimensions"));
}

}  // namespace
}  // namespace clinfer::test
