// For tests of passes on small graphs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/graph/evaluate.h"
#include "engine/passes/passes.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/engine/graph/graph_text.h"
#include "tests/kernels/op_test.h"

namespace clinfer::test {

// A CPU with AVX2.
inline PassContext cpu_context() {
  PassContext context;
  context.traits.is_cpu = true;
  context.traits.vendor = Vendor::pocl;
  context.traits.vector_width = 8;
  return context;
}

// A constant of one dimension.
inline Edge integers(GraphBuilder& b, const std::vector<int64_t>& values) {
  return b.constant(
      Tensor::of<int64_t>(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
}

// Inputs between `low` and `high` for all parameters.
inline std::vector<Tensor> random_inputs(const Graph& graph, float low = -4, float high = 4) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), low, high, 7));
  return inputs;
}

// Runs the passes up to `until` and expects the outputs of the graph to stay what they were, to 0.0003
// of their size.
inline void expect_same_values(Graph& graph, const std::string& until, float low = -4,
                               float high = 4) {
  const std::vector<Tensor> inputs = random_inputs(graph, low, high);
  const std::vector<Tensor> before = evaluate_graph(graph, inputs);
  run_passes(graph, cpu_context(), until);
  const std::vector<Tensor> after = evaluate_graph(graph, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].shape(), after[i].shape());
    for (int64_t k = 0; k < before[i].elements(); ++k)
      ASSERT_NEAR(before[i].data<float>()[k], after[i].data<float>()[k],
                  3e-4f * std::max(1.f, std::fabs(before[i].data<float>()[k])))
          << "output " << i << ", element " << k;
  }
}

// Expects the passes up to `until` to turn one graph into the other, both in the text form, with
// the same values.
inline void expect_becomes(const std::string& before, const std::string& until,
                           const std::string& after) {
  const auto graph = graph_of(before);
  expect_same_values(*graph, until);
  EXPECT_EQ(text_of(*graph), after);
}

// Operations other than constants, inputs and outputs.
inline size_t operations(const Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [](const auto& n) { return n->def != nullptr; }));
}

// A convolution with stride 1 and the same pads on all sides.
inline Edge conv(GraphBuilder& b, Edge x, int64_t in, int64_t out, int64_t k, const char* pad,
                 unsigned seed) {
  return b.op("Convolution", 1, {x, b.constant(random_tensor({out, in, k, k}, -1, 1, seed))},
              {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", pad}, {"pads_end", pad}});
}

// With weights drawn from a seed; as many input channels as `x` has.
inline Edge convolved(GraphBuilder& b, Edge x, int64_t out, int64_t k, const char* strides,
                      const char* begin, const char* end, const char* auto_pad = "explicit") {
  const int64_t in = x.node->shape(x.port)[1];
  return b.op("Convolution", 1, {x, b.constant(random_tensor({out, in, k, k}, -1, 1, 3))},
              {{"strides", strides},
               {"dilations", "1,1"},
               {"pads_begin", begin},
               {"pads_end", end},
               {"auto_pad", auto_pad}});
}

inline Edge mul(GraphBuilder& b, Edge x, Edge y) { return b.op("Multiply", 1, {x, y}); }
inline Edge add(GraphBuilder& b, Edge x, Edge y) { return b.op("Add", 1, {x, y}); }
inline Edge sub(GraphBuilder& b, Edge x, Edge y) { return b.op("Subtract", 1, {x, y}); }
inline Edge divide(GraphBuilder& b, Edge x, Edge y) { return b.op("Divide", 1, {x, y}); }
inline Edge power(GraphBuilder& b, Edge x, float y) { return b.op("Power", 1, {x, b.number(y)}); }
inline Edge unary(GraphBuilder& b, const char* type, Edge x) { return b.op(type, 1, {x}); }
inline Edge clamp(GraphBuilder& b, Edge x, const char* low, const char* high) {
  return b.op("Clamp", 1, {x}, {{"min", low}, {"max", high}});
}
inline Edge reshape(GraphBuilder& b, Edge x, const std::vector<int64_t>& shape) {
  return b.op("Reshape", 1, {x, b.ints(shape)}, {{"special_zero", "false"}});
}
inline Edge transpose(GraphBuilder& b, Edge x, const std::vector<int64_t>& order) {
  return b.op("Transpose", 1, {x, b.ints(order)});
}

// The tail of the one node of a type.
inline std::vector<std::string> functions_of(const Graph& graph, const char* type) {
  std::vector<std::string> functions;
  EXPECT_EQ(count_of(graph, type), 1u);
  for (const auto& node : graph.nodes())
    for (const PostOp& step : node->is(type) ? node->tail : std::vector<PostOp>())
      functions.push_back(step.function);
  return functions;
}

}  // namespace clinfer::test
