// INFERENCE_PRECISION=bf16: what computes with it, how far results are off, and what is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/graph/evaluate.h"
#include "engine/runtime/model.h"
#include "tests/devices.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/kernels/op_test.h"

namespace clinfer {
namespace {

using test::GraphBuilder;
using test::random_tensor;

// A convolution that bf16 takes, one with too few channels for it, and a fully connected layer.
std::unique_ptr<Graph> network() {
  GraphBuilder b;
  const auto conv = [&](const Edge& data, const Shape& filter, unsigned seed) {
    return b.op(
        "Convolution", 1, {data, b.constant(random_tensor(filter, -1, 1, seed))},
        {{"strides", "1,1"}, {"pads_begin", "1,1"}, {"pads_end", "1,1"}, {"dilations", "1,1"}});
  };
  const Edge few = b.op("ReLU", 1, {conv(b.parameter({1, 3, 12, 10}), {32, 3, 3, 3}, 1)});
  const Edge many = b.op("ReLU", 1, {conv(few, {40, 32, 3, 3}, 2)});
  const Edge rows =
      b.op("Reshape", 1,
           {many, b.constant(Tensor::of(ElementType::i64, {2}, std::vector<int64_t>{1, 4800}))},
           {{"special_zero", "false"}});
  b.result(b.op("MatMul", 1, {rows, b.constant(random_tensor({4800, 48}, -1, 1, 3))},
                {{"transpose_a", "false"}, {"transpose_b", "false"}}));
  return b.finish();
}

std::shared_ptr<CompiledModel> compile(const Graph& graph, bool count) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.first_tier = false;
  config.precision = Precision::bf16;
  config.perf_count = count;
  return CompiledModel::compile(
      std::make_shared<ReadModel>(*Model::read(test::ball_model()), graph.clone()), config);
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(double{value}));
  return most;
}

// As one launch and step by step.
TEST(Bf16, ResultsAreNearThoseOfF32) {
  const auto graph = network();
  const std::vector<Tensor> inputs{random_tensor({1, 3, 12, 10}, -1, 1, 9)};
  const std::vector<float> want = evaluate_graph(*graph, inputs)[0].to_floats();
  for (const bool count : {false, true}) {
    const auto compiled = compile(*graph, count);
    const bool can = compiled->precision() == Precision::bf16;
    const auto request = compiled->create_request();
    request->set_input(0, inputs[0]);
    request->start();
    request->wait();
    const std::vector<float> got = request->output(0).to_floats();
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i)
      worst = std::max(worst, std::abs(double{got[i]} - double{want[i]}));
    EXPECT_LE(worst, 0.01 * largest(want));
    EXPECT_EQ(worst > 1e-4 * largest(want), can) << "products of bf16 are rounded";
    EXPECT_EQ(std::any_of(compiled->warnings().begin(), compiled->warnings().end(),
                          [](const std::string& text) {
                            return text.find("no instructions for bf16") != std::string::npos;
                          }),
              !can);
    if (count && can) {
      const auto profile = compiled->profile();
      const auto runs = [&](const char* kernel) {
        return std::count_if(profile.begin(), profile.end(), [&](const StepProfile& row) {
          return row.kernel.find(kernel) != std::string::npos;
        });
      };
      EXPECT_EQ(runs("conv_bf16"), 1);
      EXPECT_EQ(runs("fc_bf16"), 1);
    }
  }
}

}  // namespace
}  // namespace clinfer
