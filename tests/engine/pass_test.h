// For tests of passes on small graphs.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/passes/passes.h"
#include "tests/engine/graph_builder.h"
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

inline Edge conv(GraphBuilder& b, Edge x, int64_t in, int64_t out, int64_t k, const char* pad,
                 unsigned seed) {
  return b.op("Convolution", 1, {x, b.constant(random_tensor({out, in, k, k}, -1, 1, seed))},
              {{"strides", "1,1"}, {"dilations", "1,1"}, {"pads_begin", pad}, {"pads_end", pad}});
}

// The tail of the one node of a type.
inline std::vector<std::string> functions_of(const Graph& graph, const char* type) {
  std::vector<std::string> functions;
  EXPECT_EQ(count_of(graph, type), 1u);
  for (const auto& node : graph.nodes)
    for (const PostOp& step : node->is(type) ? node->tail : std::vector<PostOp>())
      functions.push_back(step.function);
  return functions;
}

}  // namespace clinfer::test
