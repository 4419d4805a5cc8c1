// Errors of outputs with few elements: those that rounding explains, and faults.
#include "gst/infer/model/explained_errors.h"

#include <gtest/gtest.h>

#include <cmath>

namespace clinfer {
namespace {

constexpr float kScore = 0.5f;

// Two scores that add up to 1, the first of which has this error.
ComputedPicture scores(float error) {
  const std::vector<float> both{kScore + error, kScore - error};
  return {{Tensor::of(ElementType::f32, {1, 2}, both)}, {}};
}

// Has errors of 0.001 from the seed `first` on, and before it nearly none.
class Rough {
 public:
  explicit Rough(unsigned first) : first_(first) {}
  ExplainedErrors::Roughly function() {
    return [this](unsigned seed) {
      ++calls;
      return scores(seed < first_ ? 1e-6f : seed % 2 ? 1e-3f : -1e-3f);
    };
  }
  unsigned calls = 0;

 private:
  const unsigned first_;
};

ResultDifference compare(ExplainedErrors& errors, float error, Rough& rough) {
  return errors.compare(scores(error), scores(0), 0.5, rough.function());
}

TEST(ExplainedErrors, SomeThatAreSmallByChanceDoNotDecide) {
  ExplainedErrors errors({{"scores", false}}, false);
  Rough rough(5);
  EXPECT_FALSE(compare(errors, 1e-5f, rough).differs);
  const ResultDifference found = compare(errors, 7e-5f, rough);
  EXPECT_FALSE(found.differs) << found.what;
  EXPECT_EQ(found.what, "");
  // Other pictures need no further inference.
  const unsigned before = rough.calls;
  EXPECT_FALSE(compare(errors, 4e-3f, rough).differs);
  EXPECT_EQ(rough.calls, before);
}

TEST(ExplainedErrors, ASmallDifferenceIsSaidAfter16Inferences) {
  ExplainedErrors errors({{"scores", false}}, false);
  Rough rough(100);
  const ResultDifference found = compare(errors, 5e-5f, rough);
  EXPECT_TRUE(found.differs);
  EXPECT_EQ(found.output, "scores");
  EXPECT_NEAR(found.difference, 1e-4, 1e-5);
  EXPECT_NE(found.what, "");
  EXPECT_EQ(rough.calls, 16u);
}

TEST(ExplainedErrors, AFaultIsSaidAtOnce) {
  ExplainedErrors errors({{"scores", false}}, false);
  Rough rough(0);
  EXPECT_TRUE(compare(errors, 0.3f, rough).differs);
  EXPECT_EQ(rough.calls, 3u);
  const ResultDifference found = compare(errors, NAN, rough);
  EXPECT_TRUE(found.differs);
  EXPECT_EQ(rough.calls, 6u);
}

}  // namespace
}  // namespace clinfer
