// Inferences of other shapes than those for which a model was compiled.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "engine/engine.h"
#include "tests/error_of.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using test::filled;
using test::SmallIr;
using Shapes = std::vector<Shape>;

// max(x, 0) + x of open inputs.
SmallIr open_model(const Shape& shape) {
  SmallIr ir;
  const int in = ir.input(shape);
  const int relu = ir.add("ReLU", 1, "", {in}, shape);
  ir.result(ir.add("Add", 1, "", {relu, in}, shape));
  return ir;
}

SmallIr two_inputs() {
  SmallIr ir;
  const int a = ir.input({-1, 4}, "a"), b = ir.input({-1, 4}, "b");
  ir.result(ir.add("Add", 1, "", {a, b}, {-1, 4}));
  return ir;
}

std::shared_ptr<CompiledModel> compile(const SmallIr& ir, unsigned plans = 8,
                                       const InputShapes& shapes = {}) {
  Config config;
  config.device = "CPU";
  config.precision = Precision::f32;
  config.shape_plans = plans;
  return CompiledModel::compile(ir.read(shapes), config);
}

void expect(InferRequest& request, const Shape& shape, float value) {
  request.set_input(0, filled(shape, value));
  request.start();
  request.wait();
  EXPECT_EQ(request.output(0).shape(), shape);
  const std::vector<float> wanted(static_cast<size_t>(count(shape)), value > 0 ? 2 * value : value);
  EXPECT_EQ(request.output(0).to_floats(), wanted);
}

using test::error_of;

TEST(OpenShapes, AreThoseOfEachInference) {
  const auto model = compile(open_model({-1, 16}));
  EXPECT_EQ(model->inputs()[0].shape, (Shape{1, 16}));
  EXPECT_EQ(model->inputs()[0].open_shape, (Shape{-1, 16}));
  const auto request = model->create_request();
  expect(*request, {1, 16}, 3);
  EXPECT_TRUE(model->shape_plans().empty());
  expect(*request, {5, 16}, 2);
  expect(*request, {5, 16}, -2);
  expect(*request, {1, 16}, 4);
  request->start();  // what is set stays set
  request->wait();
  EXPECT_EQ(request->output(0).shape(), (Shape{1, 16}));
  expect(*request, {7, 16}, 1);
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).shape(), (Shape{7, 16}));
  EXPECT_EQ(model->shape_plans(), (std::vector<Shapes>{{{7, 16}}, {{5, 16}}}));
}

TEST(OpenShapes, HeightAndWidthAreOpenAsWell) {
  InputShapes first;
  first.add("8x6");
  const auto request = compile(open_model({1, 3, -1, -1}), 8, first)->create_request();
  expect(*request, {1, 3, 6, 8}, 1);
  expect(*request, {1, 3, 9, 31}, 2);
  expect(*request, {1, 3, 6, 8}, 3);
}

TEST(OpenShapes, KeepTheLastPlans) {
  const auto model = compile(open_model({-1, 16}), 2);
  const auto request = model->create_request(), other = model->create_request();
  for (const int64_t batch : {2, 3, 2, 4}) expect(*request, {batch, 16}, 1);
  EXPECT_EQ(model->shape_plans(), (std::vector<Shapes>{{{4, 16}}, {{2, 16}}}));
  expect(*other, {3, 16}, 1);
  EXPECT_EQ(model->shape_plans(), (std::vector<Shapes>{{{3, 16}}, {{4, 16}}}));
  expect(*request, {2, 16}, 1);  // its plan went, and is made anew
}

TEST(OpenShapes, OtherDimensionsAreRefused) {
  const auto request = compile(open_model({-1, 16}))->create_request();
  for (const Shape& wrong : {Shape{5, 15}, Shape{16}, Shape{0, 16}, Shape{1, 1, 16}})
    EXPECT_NE(error_of([&] { request->set_input(0, filled(wrong, 1)); }).find("[?,16]"),
              std::string::npos);
  EXPECT_NE(error_of([&] {
              request->set_input(1, filled({1, 16}, 1));
            }).find("no input 1"),
            std::string::npos);
  expect(*request, {1, 16}, 1);
  const auto fixed = compile(open_model({-1, 16}), 0)->create_request();
  EXPECT_NE(error_of([&] {
              fixed->set_input(0, filled({5, 16}, 1));
            }).find("[1,16]"),
            std::string::npos);
  const auto closed = compile(open_model({2, 16}))->create_request();
  EXPECT_NE(error_of([&] {
              closed->set_input(0, filled({5, 16}, 1));
            }).find("[2,16]"),
            std::string::npos);
}

TEST(OpenShapes, OfSeveralInputsGoTogether) {
  const auto request = compile(two_inputs())->create_request();
  request->set_input(0, filled({3, 4}, 1));
  request->set_input(1, filled({3, 4}, 2));
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), std::vector<float>(12, 3));
  request->set_input(1, filled({1, 4}, 2));  // [3,4] and [1,4] are added by broadcasting
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), std::vector<float>(12, 3));
  request->set_input(1, filled({2, 4}, 2));
  EXPECT_NE(error_of([&] { request->start(); }).find("does not allow"), std::string::npos);
  request->set_input(1, filled({3, 4}, 5));
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), std::vector<float>(12, 6));
  request->input_memory(1);
  EXPECT_NE(error_of([&] { request->start(); }).find("by set_input()"), std::string::npos);
}

// Plans take the inputs that have the compiled shape from the request for that, which keeps them.
TEST(OpenShapes, InputsOfTheCompiledShapeServeAllPlans) {
  for (const Precision precision : {Precision::f32, Precision::f16}) {
    Config config;
    config.device = "CPU";
    config.precision = precision;
    const auto model = CompiledModel::compile(two_inputs().read(), config);
    const auto request = model->create_request();
    const auto sums = [&] {
      request->start();
      request->wait();
      return request->output(0).to_floats();
    };
    const std::vector<float> row{1, -2, 0.5f, 4};
    request->set_input(0, filled({1, 4}, 1));
    request->set_input(1, Tensor::of(ElementType::f32, {1, 4}, row));
    EXPECT_EQ(sums(), (std::vector<float>{2, -1, 1.5f, 5}));
    for (const float more : {1.0f, 3.0f}) {
      request->set_input(0, filled({2, 4}, more));
      std::vector<float> wanted;
      for (size_t i = 0; i < 8; ++i) wanted.push_back(row[i % 4] + more);
      EXPECT_EQ(sums(), wanted);
      EXPECT_EQ(sums(), wanted) << "what is set stays set";
      request->set_input(0, filled({1, 4}, 0));
      EXPECT_EQ(sums(), row);
    }
    request->set_input(1, filled({1, 4}, 7));
    request->set_input(0, filled({2, 4}, 1));
    EXPECT_EQ(sums(), std::vector<float>(8, 8)) << "what was set last";
  }
}

TEST(OpenShapes, MemoryOfAnInputHasTheCompiledShape) {
  const auto request = compile(open_model({-1, 2}))->create_request();
  expect(*request, {3, 2}, 1);
  const auto memory = request->input_memory(0);
  ASSERT_EQ(memory.size(), 2 * sizeof(float));
  reinterpret_cast<float*>(memory.data())[0] = 4;
  request->start();
  request->wait();
  EXPECT_EQ(request->output(0).to_floats(), (std::vector<float>{8, 0}));
}

// A plan is compiled by the start that needs it; requests of other threads go on, and one plan
// serves all that need it at a time.
TEST(OpenShapes, AreCompiledBesideOtherRequests) {
  const auto model = compile(open_model({-1, 16}));
  std::vector<std::future<void>> threads;
  for (int64_t t = 0; t < 6; ++t)
    threads.push_back(std::async(std::launch::async, [&model, t] {
      const auto request = model->create_request();
      for (int n = 0; n < 5; ++n) expect(*request, {1 + t % 3, 16}, static_cast<float>(n + t));
    }));
  for (auto& thread : threads) thread.get();
  EXPECT_EQ(model->shape_plans().size(), 2u);
}

}  // namespace
}  // namespace clinfer
