// A further result for each layer, for comparisons.
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::cpu_context;

TEST(ExposeLayers, EachOutputOfEachLayerIsAResult) {
  const std::string text = R"(
      x = parameter f32[1,4]
      axis = i64[] 1
      a, b = Split-1(x, axis) num_splits=2
      y = Add-1(a, b)
      result y)";
  for (const bool wanted : {false, true}) {
    const auto graph = test::graph_of(text);
    PassContext context = cpu_context();
    context.expose_layers = wanted;
    expose_layers(*graph, context);
    EXPECT_EQ(test::text_of(*graph), std::string("a = Split(in0, 1)\n"
                                                 "b = Add(a, a.1)\n"
                                                 "result b\n") +
                                         (wanted ? "result a\n"
                                                   "result a.1\n"
                                                   "result b\n"
                                                 : ""));
    EXPECT_EQ(graph->results.size(), wanted ? 4u : 1u);
  }
}

}  // namespace
}  // namespace clinfer
