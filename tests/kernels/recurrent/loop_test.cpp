// TensorIterator, Loop and If alone, with bodies written here: port maps, trip counts, refusals.
// The pass that unrolls loops is tested with bodies that are graphs.
#include "kernels/recurrent/loop.h"

#include "tests/kernels/view_test.h"

namespace clinfer::test {
namespace {

// Parameters x and s; results: s + x (the next s), 10 * x, and whether s + x is below a limit.
struct SumBody final : Body {
  Shape shape;
  float limit;
  std::vector<ValueInfo> stated;
  explicit SumBody(Shape part, float most = 1e9f)
      : shape(std::move(part)), limit(most), stated(2, {ElementType::f32, shape, {}}) {
    back_edges = {{0, 1}};
  }
  size_t node_count() const override { return 1; }
  size_t parameter_count() const override { return 2; }
  const ValueInfo& parameter(size_t i) const override { return stated.at(i); }
  bool is_constant(size_t result) const override { return result == 2 && limit > 1e8f; }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> p) const override {
    return {p[1],
            {p[0].type, p[0].shape, {}},
            {ElementType::boolean,
             {},
             limit > 1e8f ? Tensor::of(ElementType::boolean, {}, std::vector<int>{1}) : Tensor()}};
  }
  std::vector<Tensor> evaluate(std::span<const Tensor> p) const override {
    std::vector<float> sum = p[0].to_floats(), ten = sum;
    const std::vector<float> state = p[1].to_floats();
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += state[i];
      ten[i] *= 10;
    }
    return {floats(p[1].shape(), sum), floats(p[0].shape(), ten),
            Tensor::of(ElementType::boolean, {}, std::vector<int>{sum[0] < limit})};
  }
};

Body::Port sliced(size_t outer, size_t inner, int64_t axis, int64_t stride, int64_t part) {
  Body::Port port{outer, inner, true, axis, 0, -1, stride, part};
  if (stride < 0) std::swap(port.start, port.end);
  return port;
}

std::vector<Tensor> run_loop(const std::string& type, int opset, std::shared_ptr<const Body> body,
                             const std::vector<Tensor>& inputs, size_t output_count) {
  const OpDef* def = find_op(type, opset);
  OpDesc desc;
  desc.type = type;
  desc.opset = opset;
  desc.bodies = {body};
  desc.own_inputs = inputs.size();
  std::vector<ValueInfo> infos;
  for (const Tensor& input : inputs) infos.push_back({input.type(), input.shape(), input});
  std::vector<Tensor> outputs;
  for (const ValueInfo& info :
       def->infer_shapes({desc.type, opset, desc.attributes, infos, output_count, desc.bodies}))
    outputs.push_back(Tensor::allocate(info.type, info.shape));
  def->evaluate(desc, inputs, outputs);
  return outputs;
}

TEST(Loop, TensorIteratorTakesPartsInBothDirections) {
  for (const int64_t stride : {2, -2}) {
    auto body = std::make_shared<SumBody>(Shape{1, 2});
    body->inputs = {sliced(0, 0, 1, stride, 2), {1, 1}};
    body->outputs = {sliced(0, 1, -1, stride, 2), {1, 0}};
    const auto out = run_loop("TensorIterator", 1, body,
                              {floats({1, 6}, {1, 2, 3, 4, 5, 6}), floats({1, 2}, {0, 100})}, 2);
    EXPECT_EQ(out[0].to_floats(), (std::vector<float>{10, 20, 30, 40, 50, 60})) << stride;
    EXPECT_EQ(out[1].to_floats(), (std::vector<float>{9, 112})) << stride;
  }
}

TEST(Loop, CountsTripsAndObeysConditions) {
  const std::vector<Tensor> inputs{scalar(5),
                                   Tensor::of(ElementType::boolean, {}, std::vector<int>{1}),
                                   floats({1}, {2}), floats({1}, {1})};
  auto body = std::make_shared<SumBody>(Shape{1});
  body->inputs = {{2, 0}, {3, 1}};
  body->outputs = {{0, 0}, sliced(1, 1, 0, 1, 1)};
  body->condition = 2;
  auto out = run_loop("Loop", 5, body, inputs, 2);
  EXPECT_EQ(out[0].to_floats(), std::vector<float>{11});
  EXPECT_EQ(out[1].shape(), Shape{5});

  auto early = std::make_shared<SumBody>(Shape{1}, 6.0f);
  static_cast<Body&>(*early).inputs = body->inputs;
  early->outputs = body->outputs;
  early->condition = 2;
  out = run_loop("Loop", 5, early, inputs, 2);
  EXPECT_EQ(out[0].to_floats(), std::vector<float>{7});
  EXPECT_EQ(out[1].to_floats(), (std::vector<float>{20, 20, 20}));  // planned for at most 5

  std::vector<Tensor> never = inputs;
  never[0] = scalar(0);
  EXPECT_EQ(run_loop("Loop", 5, body, never, 2)[0].to_floats(), std::vector<float>{1});
}

// One parameter of i64, which is the result.
struct CountBody final : Body {
  ValueInfo stated{ElementType::i64, {1}, {}};
  size_t node_count() const override { return 1; }
  size_t parameter_count() const override { return 1; }
  const ValueInfo& parameter(size_t) const override { return stated; }
  bool is_constant(size_t) const override { return false; }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> p) const override {
    return {{p[0].type, p[0].shape, {}}};
  }
  std::vector<Tensor> evaluate(std::span<const Tensor> p) const override { return {p[0]}; }
};

TEST(Loop, BodiesGetTheTypesThatTheyState) {
  auto body = std::make_shared<CountBody>();
  body->outputs = {{0, 0}};
  const Tensor once = scalar(1), go = Tensor::of(ElementType::boolean, {}, std::vector<int>{1}),
               narrowed = Tensor::of(ElementType::i32, {1}, std::vector<int>{7});
  body->inputs = {{2, 0}};
  EXPECT_EQ(run_loop("Loop", 5, body, {once, go, narrowed}, 1)[0].type(), ElementType::i64);
  body->inputs = {sliced(0, 0, 0, 1, 1)};
  EXPECT_EQ(run_loop("TensorIterator", 1, body, {narrowed}, 1)[0].type(), ElementType::i64);
}

// Never ends, and cannot be inferred without the value of its first parameter.
struct ValueBody final : Body {
  std::vector<ValueInfo> stated{{ElementType::i64, {}, {}}, {ElementType::f32, {2}, {}}};
  ValueBody() {
    inputs = {{0, 0}, {2, 1}};
    back_edges = {{0, 1}};
    condition = 1;
  }
  size_t node_count() const override { return 1; }
  size_t parameter_count() const override { return 2; }
  const ValueInfo& parameter(size_t i) const override { return stated.at(i); }
  bool is_constant(size_t result) const override { return result == 1; }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> p) const override {
    if (p[0].value.empty()) throw Error(ErrorCode::unsupported, "a shape depends on values");
    return {p[1], {ElementType::boolean, {}, Tensor::of(ElementType::boolean, {}, std::vector{1})}};
  }
  std::vector<Tensor> evaluate(std::span<const Tensor>) const override { return {}; }
};

TEST(Loop, ConditionsOfConstantsLeaveValuesKnown) {
  const Tensor go = Tensor::of(ElementType::boolean, {}, std::vector<int>{1});
  const auto trips = [&](int64_t most) {
    const Tensor count = Tensor::of(ElementType::i64, {}, std::vector<int64_t>{most});
    const std::vector<ValueInfo> inputs{
        {count.type(), {}, count}, {go.type(), {}, go}, {ElementType::f32, {2}, {}}};
    return iterations("Loop", ValueBody(), inputs);
  };
  EXPECT_EQ(trips(1'000'000'000), 1'000'000'000);
  EXPECT_EQ(trips(-1), std::nullopt);
}

// Its results are those of a loop with `trips` iterations of `inner`.
struct LoopBody final : Body {
  std::shared_ptr<const Body> inner;
  int trips;
  LoopBody(std::shared_ptr<const Body> of, int n) : inner(std::move(of)), trips(n) {
    back_edges = {{0, 1}};
    inputs = {{2, 0}, {3, 1}};
    outputs = {{0, 0}};
  }
  size_t node_count() const override { return 1; }
  size_t parameter_count() const override { return 2; }
  const ValueInfo& parameter(size_t i) const override { return inner->parameter(i); }
  bool is_constant(size_t) const override { return false; }
  std::vector<ValueInfo> infer_shapes(std::span<const ValueInfo> p) const override {
    return {p[1]};
  }
  std::vector<Tensor> evaluate(std::span<const Tensor> p) const override {
    return run_loop(
        "Loop", 5, inner,
        {scalar(trips), Tensor::of(ElementType::boolean, {}, std::vector<int>{1}), p[0], p[1]}, 1);
  }
};

// The limits of nested loops do not multiply: together they must not take hours.
TEST(Loop, LoopsInsideOfLoopsAreCountedTogether) {
  const std::vector<Tensor> values{floats({1}, {2}), floats({1}, {1})};
  auto sum = std::make_shared<SumBody>(Shape{1});
  sum->inputs = {{2, 0}, {3, 1}};
  sum->outputs = {{0, 0}};
  EXPECT_EQ(LoopBody(std::make_shared<LoopBody>(sum, 100), 100).evaluate(values)[0].to_floats(),
            std::vector<float>{20001});
  EXPECT_THROW(LoopBody(std::make_shared<LoopBody>(sum, 30'000), 30'000).evaluate(values), Error);
}

TEST(Loop, RefusesPortMapsThatDoNotFit) {
  const std::vector<Tensor> inputs{floats({1, 6}, {1, 2, 3, 4, 5, 6}), floats({1, 2}, {0, 0})};
  const auto fails = [&](std::vector<Body::Port> in, std::vector<Body::Port> out) {
    auto body = std::make_shared<SumBody>(Shape{1, 2});
    body->inputs = std::move(in);
    body->outputs = std::move(out);
    try {
      run_loop("TensorIterator", 1, body, inputs, 1);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const Body::Port state{1, 1}, sum{0, 0};
  EXPECT_FALSE(fails({sliced(0, 0, 1, 2, 2), state}, {sum}));
  EXPECT_TRUE(fails({sliced(0, 0, 2, 2, 2), state}, {sum}));     // no such axis
  EXPECT_TRUE(fails({sliced(0, 0, 1, 0, 2), state}, {sum}));     // never advances
  EXPECT_TRUE(fails({sliced(0, 0, 1, 1, 2), state}, {sum}));     // parts overlap
  EXPECT_TRUE(fails({sliced(7, 0, 1, 2, 2), state}, {sum}));     // no such input
  EXPECT_TRUE(fails({sliced(0, 0, 1, 2, 2)}, {sum}));            // the state has no first value
  EXPECT_TRUE(fails({{0, 0}, state}, {sum}));                    // the trip count is missing
  EXPECT_TRUE(fails({sliced(0, 0, 1, 2, 2), state}, {{5, 0}}));  // no such output
  EXPECT_TRUE(fails({sliced(0, 0, 1, 2, 2), state}, {}));        // the output is missing
  EXPECT_TRUE(fails({sliced(0, 0, 1, 2, 2), state}, {sum, {0, 1}}));
}

}  // namespace
}  // namespace clinfer::test
