// Loops that the device runs: their values are those of the reference, whatever states they have and
// however their parts lie.
#include "engine/plan/loop.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/evaluate.h"
#include "engine/ocl/device.h"
#include "engine/passes/passes.h"
#include "engine/runtime/model.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/graph/graph_builder.h"
#include "tests/kernels/op_test.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using test::GraphBuilder;
using test::random_tensor;

using BodyPort = Body::Port;

BodyPort sliced(size_t outer, size_t inner, int64_t axis, int64_t stride, int64_t part = 1) {
  return {outer, inner, true, axis, stride < 0 ? -1 : 0, stride < 0 ? 0 : -1, stride, part};
}

std::shared_ptr<CompiledModel> compile(std::unique_ptr<Graph> graph,
                                       Precision precision = Precision::f32, unsigned streams = 1) {
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.unroll_loops = false;
  config.first_tier = false;
  config.precision = precision;
  config.streams = streams;
  config.perf_count = true;
  config.device_timeout = {};
  return CompiledModel::compile(
      std::make_shared<ReadModel>(*Model::read(test::ball_model()), std::move(graph)), config);
}

std::vector<Tensor> inputs_of(const Graph& graph, unsigned seed) {
  std::vector<Tensor> inputs;
  for (const Node* parameter : graph.parameters)
    inputs.push_back(random_tensor(parameter->shape(), -1, 1, seed++));
  return inputs;
}

void set_inputs(InferRequest& request, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
}

void expect_outputs(const InferRequest& request, const std::vector<Tensor>& want, float tolerance) {
  for (size_t k = 0; k < want.size(); ++k) {
    const std::vector<float> got = request.output(k).to_floats(), wanted = want[k].to_floats();
    ASSERT_EQ(request.output(k).shape(), want[k].shape());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], tolerance) << "output " << k << ", element " << i;
  }
}

// On the device, with every layer of the loop there, twice on one request.
void expect_on_device(const Graph& graph, Precision precision = Precision::f32) {
  const auto compiled = compile(graph.clone(), precision);
  EXPECT_TRUE(compiled->warnings().empty()) << compiled->warnings()[0];
  const auto request = compiled->create_request();
  for (const unsigned seed : {1u, 20u}) {
    const std::vector<Tensor> inputs = inputs_of(graph, seed);
    set_inputs(*request, inputs);
    request->start();
    request->wait();
    expect_outputs(*request, evaluate_graph(graph, inputs),
                   precision == Precision::f16 ? 1e-2f : 1e-4f);
  }
  for (const StepProfile& row : compiled->profile()) EXPECT_NE(row.kernel, "host") << row.layer;
}

std::unique_ptr<Graph> loop_graph(GraphBuilder& b, const std::string& type,
                                  std::vector<Edge> inputs,
                                  const std::shared_ptr<GraphBody>& body) {
  size_t outputs = 0;
  for (const BodyPort& port : body->outputs) outputs = std::max(outputs, port.outer + 1);
  const Edge loop = Insertion(b.graph(), nullptr, "loop")
                        .op(type, type == "Loop" ? 5 : 1, std::move(inputs), {}, outputs, {body});
  for (size_t k = 0; k < outputs; ++k) b.result({loop.node, static_cast<int>(k)});
  return b.finish();
}

// h = tanh(x W + h R); all of them along the axis, and the last. The shape of x is [images, units]
// and the steps.
std::unique_ptr<Graph> rnn(int64_t images, int64_t steps, int64_t in, int64_t hidden, int64_t axis,
                           int64_t stride) {
  const auto with = [&](Shape shape, int64_t size) {
    shape.insert(shape.begin() + axis, size);
    return shape;
  };
  GraphBuilder inner;
  const Edge x = inner.parameter(with({images, in}, 1)), h = inner.parameter({images, hidden});
  const Edge row = inner.op("Squeeze", 1, {x, inner.ints({axis})});
  const Edge sum = inner.op(
      "Add", 1,
      {inner.op("MatMul", 1, {row, inner.constant(random_tensor({in, hidden}, -1, 1, 5))}),
       inner.op("MatMul", 1, {h, inner.constant(random_tensor({hidden, hidden}, -1, 1, 6))})});
  const Edge next = inner.op("Tanh", 1, {sum});
  inner.result(inner.op("Unsqueeze", 1, {next, inner.ints({axis})}));
  inner.result(next);
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = {sliced(0, 0, axis, stride), {1, 1}};
  body->outputs = {sliced(0, 0, axis, stride), {1, 1}};
  body->back_edges = {{1, 1}};
  GraphBuilder b;
  const std::vector<Edge> inputs{b.parameter(with({images, in}, steps)),
                                 b.parameter({images, hidden})};
  return loop_graph(b, "TensorIterator", inputs, body);
}

TEST(DeviceLoop, PartsAlongEachAxisInBothDirections) {
  expect_on_device(*rnn(1, 9, 16, 16, 1, 1));
  expect_on_device(*rnn(3, 8, 5, 7, 1, -1));  // parts begin at any address
  expect_on_device(*rnn(2, 1, 5, 7, 0, 1));
  expect_on_device(*rnn(2, 6, 32, 32, 0, -1), Precision::f16);
}

// A row for each layer of the body, with its time in all iterations; together they are the loop's.
TEST(DeviceLoop, LayersOfTheBodyHaveCounters) {
  const auto graph = rnn(1, 9, 16, 16, 1, 1);
  const auto compiled = compile(graph->clone());
  const auto request = compiled->create_request();
  set_inputs(*request, inputs_of(*graph, 1));
  request->start();
  request->wait();
  size_t loops = 0, executed = 0, fused = 0;
  for (const StepProfile& row : compiled->profile()) {
    if (row.layer == "loop") {
      ++loops;
      EXPECT_EQ(row.kernel, "9 iterations");
      EXPECT_EQ(row.device_us, 0) << "the time is that of the layers in it";
    }
    if (!row.layer.starts_with("loop/")) continue;
    if (row.fused_into.starts_with("loop/")) ++fused;
    if (row.status != StepProfile::Status::executed || row.type != "MatMul") continue;
    ++executed;
    EXPECT_GT(row.device_us, 0) << row.layer;
  }
  EXPECT_EQ(loops, 1u);
  // The product of the input is computed for all iterations at once, before the loop.
  EXPECT_EQ(executed, 2u);
  EXPECT_GE(fused, 2u) << "the sum and the function are part of the state's product";
}

// Layers of the body are measured on operands of their own, and the file serves the next load.
TEST(DeviceLoop, LayersOfTheBodyAreTuned) {
  GraphBuilder inner;
  const Edge x = inner.parameter({1, 7}), h = inner.parameter({1, 7});
  const Edge weights = inner.constant(random_tensor({7, 7}, -1, 1, 6));
  inner.result(inner.op("Tanh", 1, {inner.op("Add", 1, {inner.op("MatMul", 1, {h, weights}), x})}));
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = {sliced(0, 0, 0, -1), {1, 1}};
  body->outputs = {{0, 0}};
  body->back_edges = {{0, 1}};
  GraphBuilder b;
  const std::vector<Edge> edges{b.parameter({6, 7}), b.parameter({1, 7})};
  const auto graph = loop_graph(b, "TensorIterator", edges, body);
  const TemporaryFolder folder;
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.cache_dir = folder / "cache";
  config.unroll_loops = config.first_tier = config.tuning_db = false;
  config.tuning_file = folder / "t.json";
  std::vector<std::string> chosen;
  for (const TuningMode mode : {TuningMode::create, TuningMode::use_existing}) {
    config.tuning_mode = mode;
    const auto compiled = CompiledModel::compile(
        std::make_shared<ReadModel>(*Model::read(test::ball_model()), graph->clone()), config);
    std::vector<std::string> kernels;
    for (const LayerTuning& layer : compiled->tuning().layers) {
      if (!layer.layer.starts_with("loop/")) continue;
      kernels.push_back(layer.kernel);
      EXPECT_EQ(layer.source, mode == TuningMode::create ? LayerTuning::Source::measured
                                                         : LayerTuning::Source::file);
      EXPECT_GT(layer.ns, 0) << layer.layer;
      EXPECT_TRUE(layer.failed.empty()) << layer.layer << ": " << layer.failed[0];
    }
    EXPECT_FALSE(kernels.empty());
    if (mode == TuningMode::create) chosen = kernels;
    EXPECT_EQ(kernels, chosen);
    const auto request = compiled->create_request();
    const std::vector<Tensor> inputs = inputs_of(*graph, 1);
    set_inputs(*request, inputs);
    request->start();
    request->wait();
    expect_outputs(*request, evaluate_graph(*graph, inputs), 1e-4f);
  }
}

// Two states that change places, of which one is no output; two outputs that are one value; parts of
// two elements, and the number of the iteration.
TEST(DeviceLoop, StatesCountersAndSharedValues) {
  for (const int64_t trips : {1, 2, 5}) {
    GraphBuilder inner;
    const Edge x = inner.parameter({2, 2}), a = inner.parameter({2, 2}),
               c = inner.parameter({2, 2});
    const Edge i = inner.parameter({1}, ElementType::i64);
    const Edge number = inner.op("Convert", 1, {i}, {{"destination_type", "f32"}});
    const Edge sum = inner.op("Add", 1, {inner.op("Add", 1, {x, a}), number});
    inner.result(sum);
    inner.result(a);
    inner.result(sum);
    inner.result(c);
    inner.result(inner.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1})));
    auto body = std::make_shared<GraphBody>(inner.finish());
    body->counter = 3;
    body->condition = 4;
    body->inputs = {sliced(2, 0, 1, 2, 2), {3, 1}, {4, 2}};
    body->outputs = {sliced(0, 0, 1, 2, 2), sliced(1, 2, 0, -2, 2), {2, 1}, {3, 3}, {4, 2}};
    body->back_edges = {{3, 1}, {0, 2}};
    GraphBuilder b;
    const Edge count = b.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{trips}));
    const Edge go = b.constant(Tensor::of(ElementType::boolean, {}, std::vector<int>{1}));
    const std::vector<Edge> inputs{count, go, b.parameter({2, 2 * trips}), b.parameter({2, 2}),
                                   b.parameter({2, 2})};
    SCOPED_TRACE(trips);
    expect_on_device(*loop_graph(b, "Loop", inputs, body));
  }
}

TEST(DeviceLoop, RequestsInFlightDoNotMix) {
  const auto graph = rnn(2, 300, 8, 8, 1, 1);
  const auto compiled = compile(graph->clone(), Precision::f32, 2);
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(compiled->create_request());
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < requests.size(); ++i) {
      set_inputs(*requests[i], inputs_of(*graph, 10 * round + i));
      requests[i]->start();
    }
    for (unsigned i = 0; i < requests.size(); ++i) {
      requests[i]->wait();
      expect_outputs(*requests[i], evaluate_graph(*graph, inputs_of(*graph, 10 * round + i)),
                     1e-4f);
    }
  }
}

TEST(DeviceLoop, ComputesPartOfABatch) {
  const auto graph = rnn(4, 6, 5, 7, 1, 1);
  Config config;
  config.device = list_devices().devices.at(0).id;
  config.unroll_loops = config.first_tier = false;
  config.precision = Precision::f32;
  config.partial_batches = true;
  config.device_timeout = {};
  const auto request =
      CompiledModel::compile(
          std::make_shared<ReadModel>(*Model::read(test::ball_model()), graph->clone()), config)
          ->create_request();
  const std::vector<Tensor> inputs = inputs_of(*graph, 1);
  const std::vector<float> want = evaluate_graph(*graph, inputs)[0].to_floats();
  set_inputs(*request, inputs);
  for (const size_t images : {size_t{1}, size_t{2}, size_t{4}}) {
    request->start(images);
    request->wait();
    const std::vector<float> got = request->output(0).to_floats();
    ASSERT_GE(got.size(), images * 6 * 7);
    for (size_t i = 0; i < images * 6 * 7; ++i) ASSERT_NEAR(got[i], want[i], 1e-5f) << i;
  }
}

TEST(DeviceLoop, IsCancelledBetweenIterations) {
  const auto graph = rnn(1, 3000, 4, 4, 1, 1);
  const auto request = compile(graph->clone())->create_request();
  const std::vector<Tensor> inputs = inputs_of(*graph, 1);
  set_inputs(*request, inputs);
  request->start();
  request->cancel();
  try {
    request->wait();
    FAIL() << "it ran to its end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  request->start();
  request->wait();
  expect_outputs(*request, evaluate_graph(*graph, inputs), 1e-3f);
}

// h W three times, where W moves each column on by one, and the product is long enough to be cut.
TEST(DeviceLoop, IsCutWithinAnIteration) {
  constexpr int64_t kColumns = 2048, kTrips = 3;
  const auto context = ocl::Context::create(ocl::select_device(""));
  std::vector<float> moving(kColumns * kColumns);
  for (int64_t i = 0; i < kColumns; ++i) moving[i * kColumns + (i + 1) % kColumns] = 1;
  OpDesc desc;
  desc.type = "MatMul";
  desc.inputs = {TensorDesc::row_major(ElementType::f32, {1000, kColumns}),
                 TensorDesc::row_major(ElementType::f32, {kColumns, kColumns})};
  desc.outputs = {TensorDesc::row_major(ElementType::f32, {1000, kColumns})};
  const auto rows =
      static_cast<int64_t>(1000 * 0.25 / assumed_seconds(desc, context->traits)) / 16 * 16;
  GraphBuilder inner;
  const Edge h = inner.parameter({rows, kColumns}), x = inner.parameter({1, kColumns});
  const Edge product = inner.op(
      "MatMul", 1, {h, inner.constant(Tensor::of(ElementType::f32, {kColumns, kColumns}, moving))});
  const Edge next = inner.op("Add", 1, {product, x});
  inner.result(next);
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = {{0, 0}, sliced(1, 1, 0, 1)};
  body->outputs = {{0, 0}};
  body->back_edges = {{0, 0}};
  GraphBuilder b;
  const std::vector<Edge> edges{b.parameter({rows, kColumns}), b.parameter({kTrips, kColumns})};
  auto graph = loop_graph(b, "TensorIterator", edges, body);
  {
    PassContext passes{context->traits};
    passes.unroll_loops = false;
    auto compiled = graph->clone();
    infer_shapes(*compiled);
    run_passes(*compiled, passes);
    const Plan plan = make_plan(std::move(compiled), context->traits);
    const auto loop = std::find_if(plan.steps.begin(), plan.steps.end(),
                                   [](const Step& step) { return step.loop != nullptr; });
    ASSERT_NE(loop, plan.steps.end());
    EXPECT_EQ(loop->loop->first_part, 1);
    EXPECT_TRUE(std::any_of(loop->cuts.begin(), loop->cuts.end(),
                            [](const Cut& cut) { return static_cast<bool>(cut); }));
  }
  const auto request = compile(std::move(graph))->create_request();
  std::vector<float> state(rows * kColumns), added(kTrips * kColumns);
  for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i % 251);
  for (size_t i = 0; i < added.size(); ++i) added[i] = static_cast<float>(i % 7);
  set_inputs(*request, {Tensor::of(ElementType::f32, {rows, kColumns}, state),
                        Tensor::of(ElementType::f32, {kTrips, kColumns}, added)});
  request->start();
  request->wait();
  const std::vector<float> got = request->output(0).to_floats();
  size_t wrong = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto before = [&](int64_t by) { return (c - by + kColumns) % kColumns; };
      float want = state[row * kColumns + before(kTrips)];
      for (int64_t trip = 0; trip < kTrips; ++trip)
        want += added[trip * kColumns + before(kTrips - 1 - trip)];
      wrong += got[row * kColumns + c] != want;
    }
  EXPECT_EQ(wrong, 0u);
}

TEST(DeviceLoop, AWarningSaysWhatStaysOnTheHost) {
  GraphBuilder inner;
  const Edge x = inner.parameter({1, 4});
  inner.result(inner.op(
      "CumSum", 3, {x, inner.constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{1}))}));
  auto body = std::make_shared<GraphBody>(inner.finish());
  body->inputs = body->outputs = {sliced(0, 0, 0, 1)};
  GraphBuilder b;
  const std::vector<Edge> inputs{b.parameter({3, 4})};
  const auto graph = loop_graph(b, "TensorIterator", inputs, body);
  const auto compiled = compile(graph->clone());
  ASSERT_EQ(compiled->warnings().size(), 1u);
  const std::string warning = compiled->warnings()[0];
  for (const char* part : {"loop", "runs on the host, in one thread", "CumSum", "has no kernel"})
    EXPECT_NE(warning.find(part), std::string::npos) << warning;
  const auto request = compiled->create_request();
  set_inputs(*request, inputs_of(*graph, 1));
  request->start();
  request->wait();
  expect_outputs(*request, evaluate_graph(*graph, inputs_of(*graph, 1)), 1e-5f);
}

}  // namespace
}  // namespace clinfer
