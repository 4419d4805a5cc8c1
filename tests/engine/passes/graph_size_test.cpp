// All passes take time in proportion to the size of the graph, for networks of several kinds.
// pipelines/bench/graph_size.py measures more kinds and larger graphs.
#include <sys/resource.h>

#include "engine/runtime/model.h"
#include "tests/engine/passes/pass_test.h"

namespace clinfer {
namespace {

using test::conv;
using test::cpu_context;
using test::GraphBuilder;

const Shape kImage{1, 4, 2, 2};

void activations(GraphBuilder& b, int n) {
  Edge x = b.parameter(kImage);
  for (int i = 0; i < n; ++i) x = b.op(i % 2 ? "Sigmoid" : "ReLU", 1, {x});
  b.result(x);
}

void factors(GraphBuilder& b, int n) {
  Edge x = b.parameter(kImage);
  for (int i = 0; i < n / 2; ++i) x = b.op(i % 2 ? "Multiply" : "Add", 1, {x, b.number(0.9f)});
  b.result(x);
}

void residuals(GraphBuilder& b, int n) {
  Edge x = b.parameter(kImage);
  for (int i = 0; i < n / 4; ++i)
    x = b.op("ReLU", 1, {b.op("Add", 1, {x, conv(b, x, 4, 4, 1, "0,0", 1)})});
  b.result(x);
}

void readers_of_one_tensor(GraphBuilder& b, int n) {
  const Edge x = b.parameter(kImage);
  std::vector<Edge> parts;
  for (int i = 0; i < n - 1; ++i) parts.push_back(b.op("Sigmoid", 1, {x}));
  b.result(b.op("Concat", 1, parts, {{"axis", "1"}}));
}

void parts_of_one_tensor(GraphBuilder& b, int n) {
  const int parts = n / 2;
  const Edge axis = b.constant(Tensor::of(ElementType::i64, {}, std::vector<int>{1}));
  const Edge split = b.op("Split", 1, {b.parameter({1, parts, 2, 2}), axis},
                          {{"num_splits", std::to_string(parts)}}, static_cast<size_t>(parts));
  std::vector<Edge> all;
  for (int i = 0; i < parts; ++i) all.push_back(b.op("Tanh", 1, {{split.node, i}}));
  b.result(b.op("Concat", 1, all, {{"axis", "1"}}));
}

void convolutions_of_one_tensor(GraphBuilder& b, int n) {
  const Edge x = b.op("Sqrt", 1, {b.parameter(kImage)});
  std::vector<Edge> parts;
  for (int i = 0; i < n / 3; ++i)
    parts.push_back(conv(b, x, 4, 4, 1, "0,0", static_cast<unsigned>(i)));
  b.result(b.op("Concat", 1, parts, {{"axis", "1"}}));
}

void pools_of_one_tensor(GraphBuilder& b, int n) {
  const Edge x = b.op("Sqrt", 1, {b.parameter({1, 1, 2, 2})});
  std::vector<Edge> parts;
  for (int i = 0; i < n; ++i) {
    const std::string size = std::to_string(2 * (i % 2 ? i : n - i) + 1) + "," +
                             std::to_string(2 * (i % 2 ? n - i : i) + 1),
                      pads = std::to_string(i % 2 ? i : n - i) + "," +
                             std::to_string(i % 2 ? n - i : i);
    parts.push_back(b.op("MaxPool", 1, {x},
                         {{"kernel", size},
                          {"strides", "1,1"},
                          {"pads_begin", pads},
                          {"pads_end", pads},
                          {"rounding_type", "floor"}}));
  }
  b.result(b.op("Concat", 1, parts, {{"axis", "1"}}));
}

void functions_of_parts(GraphBuilder& b, int n) {
  const int parts = n / 2;
  const Edge axis = b.constant(Tensor::of(ElementType::i64, {}, std::vector<int>{1}));
  const Edge split = b.op("Split", 1, {b.parameter({1, parts, 2, 2}), axis},
                          {{"num_splits", std::to_string(parts)}}, static_cast<size_t>(parts));
  for (int i = 0; i < parts; ++i)
    b.result(b.op(i < parts / 2 ? "HSwish" : "Tanh", i < parts / 2 ? 4 : 1, {{split.node, i}}));
}

void results_of_one_tensor(GraphBuilder& b, int n) {
  const Edge x = b.op("Sqrt", 1, {b.parameter(kImage)});
  for (int i = 0; i < n; ++i) {
    x.node->outputs[0].names.push_back("name" + std::to_string(i));
    b.result(x);
  }
}

void inputs_and_outputs(GraphBuilder& b, int n) {
  Edge x = b.parameter(kImage);
  for (int i = 0; i < n / 3; ++i) {
    x = b.op("Add", 1, {x, b.parameter(kImage)});
    b.result(x);
  }
}

void views(GraphBuilder& b, int n) {
  Edge x = b.parameter({1, n + 8});
  const Edge one = b.ints({1}), end = b.ints({INT32_MAX});
  for (int i = 0; i < n; ++i) x = b.op("Slice", 8, {x, one, end, one, one});
  b.result(b.op("ReLU", 1, {x}));
}

void quantised(GraphBuilder& b, int n) {
  Edge x = b.parameter(kImage);
  const Edge low = b.number(0), high = b.number(2.55f);
  for (int i = 0; i < n / 4; ++i) {
    x = b.op("FakeQuantize", 1, {x, low, high, low, high}, {{"levels", "256"}});
    x = b.op("ReLU", 1, {conv(b, x, 4, 4, 1, "0,0", 1)});
  }
  b.result(x);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

double seconds_for(void (*build)(GraphBuilder&, int), int layers) {
  GraphBuilder b;
  build(b, layers);
  const auto graph = b.finish();
  PassContext context = cpu_context();
  context.traits.dot = DotProduct::avx512;
  const double start = cpu_seconds();
  infer_shapes(*graph);
  EXPECT_EQ(input_ports(*graph).size(), graph->parameters.size());
  EXPECT_EQ(output_ports(*graph).size(), graph->results.size());
  run_passes(*graph, context);
  return cpu_seconds() - start;
}

struct Kind {
  const char* name;
  void (*build)(GraphBuilder&, int);
};

class GraphSize : public testing::TestWithParam<Kind> {};

// Four times the layers take four times as long, 16 times where a pass is quadratic. Caches and other
// processes disturb measurements: hence the generous limit, and several trials.
TEST_P(GraphSize, TimeGrowsInProportion) {
  constexpr int kLayers = 5000, kTrials = 5;
  double ratio = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    // The larger graph first: the smaller one then finds a heap that is no tidier.
    const double four_times = seconds_for(GetParam().build, 4 * kLayers);
    ratio = four_times / seconds_for(GetParam().build, kLayers);
    if (ratio < 12) return;
  }
  ADD_FAILURE() << "four times the layers take " << ratio << " times as long";
}

INSTANTIATE_TEST_SUITE_P(
    , GraphSize,
    testing::Values(Kind{"Activations", activations}, Kind{"Factors", factors},
                    Kind{"Residuals", residuals}, Kind{"ReadersOfOneTensor", readers_of_one_tensor},
                    Kind{"PartsOfOneTensor", parts_of_one_tensor},
                    Kind{"ConvolutionsOfOneTensor", convolutions_of_one_tensor},
                    Kind{"PoolsOfOneTensor", pools_of_one_tensor},
                    Kind{"FunctionsOfParts", functions_of_parts},
                    Kind{"ResultsOfOneTensor", results_of_one_tensor},
                    Kind{"InputsAndOutputs", inputs_and_outputs}, Kind{"Views", views},
                    Kind{"Quantised", quantised}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace clinfer
