// device=BATCH: requests of one image each that share inferences.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "engine/async.h"
#include "engine/engine.h"
#include "tests/engine/ball_model.h"
#include "tests/error_of.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using test::SmallIr;

// x + max(x, 0), of pictures.
std::shared_ptr<const Model> picture_model() {
  static const Shape shape{1, 3, 4, 4};
  SmallIr ir;
  const int in = ir.input(shape);
  const int relu = ir.add("ReLU", 1, "", {in}, shape);
  ir.result(ir.add("Add", 1, "", {relu, in}, shape));
  return ir.read();
}

std::shared_ptr<CompiledModel> compile(const std::string& device, unsigned timeout,
                                       const std::shared_ptr<const Model>& model = picture_model(),
                                       unsigned batch = 0) {
  Config config;
  config.device = device;
  config.batch = batch;
  config.set("AUTO_BATCH_TIMEOUT", std::to_string(timeout));
  config.precision = Precision::f32;
  return CompiledModel::compile(model, config);
}

Tensor filled(float value) {
  return Tensor::of(ElementType::f32, {1, 3, 4, 4}, std::vector<float>(48, value));
}

void expect(const InferRequest& request, float value) {
  EXPECT_EQ(request.output(0).shape(), (Shape{1, 3, 4, 4}));
  EXPECT_EQ(request.output(0).to_floats(), std::vector<float>(48, value > 0 ? 2 * value : value));
}

using test::error_of;

TEST(AutomaticBatches, AreSharedByRequests) {
  const auto model = compile("BATCH:CPU(4)", 60000);
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, 3, 4, 4}));
  EXPECT_GE(model->optimal_requests(), 4u);
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (int n = 0; n < 8; ++n) requests.push_back(model->create_request());
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < 8; ++n) {
      requests[static_cast<size_t>(n)]->set_input(0, filled(static_cast<float>(n - 3 + round)));
      requests[static_cast<size_t>(n)]->start();
    }
    for (int n = 7; n >= 0; --n) {
      EXPECT_TRUE(requests[static_cast<size_t>(n)]->wait());
      expect(*requests[static_cast<size_t>(n)], static_cast<float>(n - 3 + round));
    }
  }
  EXPECT_EQ(model->devices()[0].inferences->load(), 6u) << "24 requests in batches of 4";
}

TEST(AutomaticBatches, GoWithoutOthersAfterTheTimeout) {
  const auto model = compile("BATCH:CPU", 50);
  const auto request = model->create_request(), other = model->create_request();
  request->set_input(0, filled(3));
  request->start();
  EXPECT_FALSE(request->wait(std::chrono::milliseconds(1)));
  EXPECT_TRUE(request->wait());
  expect(*request, 3);
  request->start();  // what is set stays set
  other->set_input(0, filled(-1));
  other->start();
  other->wait();
  request->wait();
  expect(*request, 3);
  expect(*other, -1);
  EXPECT_EQ(model->devices()[0].inferences->load(), 2u);
}

TEST(AutomaticBatches, MayBeCancelled) {
  const auto model = compile("BATCH:CPU(4)", 300);
  const auto request = model->create_request(), other = model->create_request();
  other->set_input(0, filled(2));
  request->start();
  other->start();
  EXPECT_NE(error_of([&] { request->set_input(0, filled(1)); }).find("in flight"),
            std::string::npos);
  request->cancel();
  EXPECT_NE(error_of([&] { request->wait(); }).find("cancelled"), std::string::npos);
  other->wait();
  expect(*other, 2);
  {
    const auto dropped = model->create_request();
    dropped->start();
  }
  request->set_input(0, filled(5));
  request->start();
  request->wait();
  expect(*request, 5);
}

TEST(AutomaticBatches, TakeFramesAndTensors) {
  const auto model = compile("BATCH:CPU(2)", 20);
  const std::vector<uint8_t> pixels(16, 7);
  const Frame frame{PixelFormat::gray8, 4, 4, {pixels.data()}, {4}};
  const auto request = model->create_request(), other = model->create_request();
  request->set_frame(0, frame, {});
  other->set_input(0, filled(4));
  request->start();
  other->start();
  request->wait();
  other->wait();
  expect(*request, 7);
  expect(*other, 4);
  EXPECT_NE(error_of([&] { request->start(); }).find("anew"), std::string::npos);
  request->set_frame(0, frame, {});
  other->set_frame(0, frame, {});
  request->start();
  other->start();
  other->wait();
  request->wait();
  expect(*request, 7);
  expect(*other, 7);
}

// DetectionOutput lists the rows of all images together. Some pictures have no ball, and a last one
// is alone.
TEST(AutomaticBatches, GiveEachRequestItsOwnDetections) {
  const auto model = compile("BATCH:CPU(4)", 20, Model::read(test::ball_model()));
  const auto alone = compile("CPU", 20, Model::read(test::ball_model()))->create_request();
  const Shape& shape = model->inputs()[0].shape;
  EXPECT_EQ(model->outputs()[0].shape[2] * 4,
            compile("CPU", 20, Model::read(test::ball_model()), 4)->outputs()[0].shape[2]);
  std::vector<std::unique_ptr<InferRequest>> requests;
  std::vector<Tensor> inputs;
  for (int n = 0; n < 5; ++n) {
    std::vector<float> pixels(static_cast<size_t>(count(shape)));
    for (int64_t i = 0; n % 3 != 1 && i < count(shape); ++i) {
      const int64_t x = i % shape[3] - 40 - 30 * n, y = i / shape[3] % shape[2] - 60;
      pixels[static_cast<size_t>(i)] = x * x + y * y < 256 ? 255.0f : 0.0f;
    }
    inputs.push_back(Tensor::of(ElementType::f32, shape, pixels));
    requests.push_back(model->create_request());
    requests.back()->set_input(0, inputs.back());
    requests.back()->start();
  }
  for (size_t n = 0; n < 5; ++n) {
    requests[n]->wait();
    alone->set_input(0, inputs[n]);
    alone->start();
    alone->wait();
    const std::vector<float> rows = requests[n]->output(0).to_floats(),
                             wanted = alone->output(0).to_floats();
    EXPECT_EQ(requests[n]->output(0).shape(), alone->output(0).shape());
    ASSERT_EQ(rows.size(), wanted.size());
    EXPECT_EQ(rows[0], n % 3 == 1 ? -1 : 0) << n;
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], wanted[i], 1e-4) << n << " " << i;
  }
}

TEST(AutomaticBatches, ServeManyThreads) {
  const auto model = compile("BATCH:CPU(3)", 5);
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 7; ++t)
    threads.push_back(std::async(std::launch::async, [&model, t] {
      const auto request = model->create_request();
      for (int n = 0; n < 20; ++n) {
        const auto value = static_cast<float>(10 * t + n);
        request->set_input(0, filled(value));
        request->start();
        request->wait();
        expect(*request, value);
      }
    }));
  for (auto& thread : threads) thread.get();
  AsyncQueue queue(model);
  std::atomic<int> right{0};
  for (int n = 1; n <= 20; ++n)
    queue.start([n](InferRequest& request) { request.set_input(0, filled(static_cast<float>(n))); },
                [n, &right](InferRequest& request, std::exception_ptr) {
                  right += request.output(0).data<float>()[0] == static_cast<float>(2 * n);
                });
  queue.wait();
  EXPECT_EQ(right, 20);
}

TEST(AutomaticBatches, AreRefusedWhereTheyCannotBe) {
  for (const char* const device :
       {"BATCH", "BATCH:CPU(1)", "BATCH:CPU(x)", "BATCH:CPU(4", "BATCH:CPU,CPU", "BATCH:CPU(1000)"})
    EXPECT_NE(error_of([&] { compile(device, 1); }), "") << device;
  SmallIr sum;
  const int in = sum.input({1, 3}), zero = sum.constant({1}, {0}),
            axis = sum.add("Convert", 1, "destination_type=\"i64\"", {zero}, {1});
  sum.result(sum.add("ReduceSum", 1, "keep_dims=\"true\"", {in, axis}, {1, 3}));
  EXPECT_NE(error_of([&] { compile("BATCH:CPU", 1, sum.read()); }).find("cannot be divided"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              compile("BATCH:CPU", 1, test::sum_model({1, 3}, 0).read());
            }).find("keeps states"),
            std::string::npos);
}

}  // namespace
}  // namespace clinfer
