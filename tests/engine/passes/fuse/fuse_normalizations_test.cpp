// Normalisations written out in several operations: in the ways in which exporters write them, and
// what looks alike but is none.
#include "tests/engine/passes/pass_test.h"
#include "tests/german_locale.h"

namespace clinfer {
namespace {

using test::add;
using test::clamp;
using test::count_of;
using test::divide;
using test::expect_same_values;
using test::find;
using test::GraphBuilder;
using test::mul;
using test::operations;
using test::power;
using test::random_tensor;
using test::sub;
using test::unary;

struct Parts {
  GraphBuilder b;
  Edge x, mean, centre, variance, epsilon;

  explicit Parts(const Shape& shape = {2, 6, 8}, const std::vector<int64_t>& axes = {-1}) {
    x = b.parameter(shape);
    mean = reduce("ReduceMean", x, axes);
    centre = sub(b, x, mean);
    variance = reduce("ReduceMean", power(b, centre, 2), axes);
    epsilon = b.number(1e-5f);
  }
  Edge reduce(const char* type, Edge of, const std::vector<int64_t>& axes,
              const char* keep = "true") {
    return b.op(type, type == std::string("ReduceL2") ? 4 : 1, {of, b.ints(axes)},
                {{"keep_dims", keep}});
  }
  std::unique_ptr<Graph> finish(Edge result) {
    b.result(result);
    return b.finish();
  }
};

TEST(FuseNormalizations, LayerNormalisationAsPyTorchWritesIt) {
  Parts p;
  Edge y = divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, p.variance, p.epsilon)));
  y = mul(p.b, y, p.b.constant(random_tensor({8}, 0.5, 2, 2)));
  y = add(p.b, y, p.b.constant(random_tensor({8}, -1, 1, 3)));
  auto graph = p.finish(y);
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);  // scale and shift in its tail
}

TEST(FuseNormalizations, LayerNormalisationAsTensorFlowWritesIt) {
  Parts p({2, 6, 8}, {2});
  const Edge variance = p.reduce("ReduceMean", p.b.op("SquaredDifference", 1, {p.x, p.mean}), {2});
  const Edge r = mul(p.b, power(p.b, add(p.b, variance, p.epsilon), -0.5f),
                     p.b.constant(random_tensor({8}, 0.5, 2, 2)));
  const Edge rest = sub(p.b, p.b.constant(random_tensor({8}, -1, 1, 3)), mul(p.b, p.mean, r));
  auto graph = p.finish(add(p.b, mul(p.b, p.x, r), rest));
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, InstanceNormalisationOfImages) {
  Parts p({2, 6, 4, 5}, {2, 3});
  const Edge deviation = unary(p.b, "Sqrt", add(p.b, p.epsilon, p.variance));
  auto graph = p.finish(mul(p.b, divide(p.b, p.b.number(1), deviation), p.centre));
  expect_same_values(*graph, "fuse_normalizations");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, EpsilonOutsideOfTheRoot) {
  Parts p;
  auto graph =
      p.finish(divide(p.b, p.centre, add(p.b, unary(p.b, "Sqrt", p.variance), p.b.number(0.1f))));
  expect_same_values(*graph, "fuse_normalizations");
  ASSERT_EQ(count_of(*graph, "MVN"), 1u);
  EXPECT_EQ(find(*graph, "MVN")->attributes.get_string("eps_mode"), "OUTSIDE_SQRT");
}

// GTK's applications and gst-launch-1.0 set the user's locale.
TEST(FuseNormalizations, InAGermanApplication) {
  const GermanLocale german;
  if (!german.is_set()) GTEST_SKIP() << "localedef makes no German locale";
  Parts p;
  auto graph =
      p.finish(divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, p.variance, p.b.number(0.5f)))));
  expect_same_values(*graph, "fuse_normalizations");
  EXPECT_EQ(count_of(*graph, "MVN"), 1u);
}

TEST(FuseNormalizations, RootMeanSquare) {
  Parts p;
  const Edge mean = p.reduce("ReduceMean", power(p.b, p.x, 2), {-1});
  const Edge r = power(p.b, add(p.b, mean, p.b.number(0.01f)), -0.5f);
  auto graph = p.finish(mul(p.b, mul(p.b, p.x, r), p.b.constant(random_tensor({8}, 0.5, 2, 2))));
  expect_same_values(*graph, "fuse_tails");
  EXPECT_EQ(count_of(*graph, "NormalizeL2"), 1u);
  EXPECT_EQ(operations(*graph), 1u);
}

TEST(FuseNormalizations, DivisionByTheNorm) {
  for (const char* bound : {"", "Maximum", "Clamp"}) {
    SCOPED_TRACE(bound);
    Parts p;
    Edge norm = *bound ? p.reduce("ReduceL2", p.x, {1})
                       : unary(p.b, "Sqrt", p.reduce("ReduceSum", mul(p.b, p.x, p.x), {1}));
    if (bound == std::string("Maximum")) norm = p.b.op(bound, 1, {norm, p.b.number(5)});
    if (bound == std::string("Clamp")) norm = clamp(p.b, norm, "5", "3.4e38");
    auto graph = p.finish(divide(p.b, p.x, norm));
    expect_same_values(*graph, "fuse_normalizations");
    EXPECT_EQ(count_of(*graph, "NormalizeL2"), 1u);
    EXPECT_EQ(operations(*graph), 1u);
  }
}

TEST(FuseNormalizations, LeavesWhatIsNone) {
  const auto stays = [](auto&& build) {
    Parts p;
    auto graph = p.finish(build(p));
    expect_same_values(*graph, "fuse_normalizations");
    EXPECT_EQ(count_of(*graph, "MVN") + count_of(*graph, "NormalizeL2"), 0u);
  };
  stays([](Parts& p) {  // another tensor is divided
    return divide(p.b, p.x, unary(p.b, "Sqrt", add(p.b, p.variance, p.epsilon)));
  });
  stays([](Parts& p) {  // mean and variance over other axes
    const Edge variance = p.reduce("ReduceMean", power(p.b, p.centre, 2), {1});
    return divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, variance, p.epsilon)));
  });
  stays([](Parts& p) {  // the third power
    const Edge sum = p.reduce("ReduceMean", unary(p.b, "Abs", power(p.b, p.centre, 3)), {-1});
    return divide(p.b, p.centre, unary(p.b, "Sqrt", add(p.b, sum, p.epsilon)));
  });
  stays([](Parts& p) {  // the variance itself
    return divide(p.b, p.centre, add(p.b, p.variance, p.b.number(1)));
  });
}

}  // namespace
}  // namespace clinfer
