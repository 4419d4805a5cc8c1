// For tests of passes on quantised models.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/passes/pass_test.h"

namespace clinfer::test {

inline Tensor numbers(const Shape& shape, const std::vector<float>& values) {
  return Tensor::of(ElementType::f32, shape, values);
}

inline Edge fake_quantize(GraphBuilder& b, Edge x, float low, float high,
                          const char* levels = "256") {
  const Edge from = b.constant(numbers({}, {low})), to = b.constant(numbers({}, {high}));
  return b.op("FakeQuantize", 1, {x, from, to, from, to}, {{"levels", levels}});
}

// Weights on grids of their own for each output channel, from -127 to 127 steps.
inline Tensor weights_on_grids(const Shape& shape) {
  std::vector<float> values = random_ints(ElementType::i8, shape, -127, 127, 5).to_floats();
  const size_t depth = values.size() / static_cast<size_t>(shape[0]);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= 0.001f * static_cast<float>(1 + i / depth);
  return numbers(shape, values);
}

inline Edge conv_on_grids(GraphBuilder& b, Edge x, const char* type, const Shape& filter) {
  return b.op(
      type, 1, {x, b.constant(weights_on_grids(filter))},
      {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}});
}

// All values within `steps` of the last quantisation before the output, whose step is `step`.
inline void expect_same_values_but(Graph& graph, float step, const PassContext& context) {
  const std::vector<Tensor> inputs = random_inputs(graph, -2, 2);
  const Tensor before = evaluate_graph(graph, inputs)[0];
  run_passes(graph, context, "fuse_tails");
  const Tensor after = evaluate_graph(graph, inputs)[0];
  for (int64_t k = 0; k < before.elements(); ++k)
    ASSERT_NEAR(before.data<float>()[k], after.data<float>()[k], step) << "element " << k;
}

}  // namespace clinfer::test
