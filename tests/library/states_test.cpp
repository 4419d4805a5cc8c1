// States: values that a request keeps from one inference to the next.
#include <gtest/gtest.h>

#include <string>

#include "engine/engine.h"
#include "tests/error_of.h"
#include "tests/small_ir.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using test::filled;
using test::SmallIr;
using test::sum_model;

Config on_cpu() {
  Config config;
  config.device = "CPU";
  config.precision = Precision::f32;
  return config;
}

float infer(InferRequest& request, const Shape& shape, float value) {
  request.set_input(0, filled(shape, value));
  request.start();
  request.wait();
  return request.output(0).data<float>()[0];
}

using test::error_of;

class States : public testing::TestWithParam<bool> {  // whether the host computes
 protected:
  static std::shared_ptr<CompiledModel> compile(const SmallIr& ir,
                                                const Config& config = on_cpu()) {
    return GetParam() ? CompiledModel::compile_first_tier(ir.read(), config)
                      : CompiledModel::compile(ir.read(), config);
  }
};

TEST_P(States, AreKeptResetReadAndSet) {
  for (const int opset : {3, 6}) {
    const Shape shape{1, 3};
    const auto model = compile(sum_model(shape, 5, opset));
    ASSERT_EQ(model->model().states().size(), 1u);
    EXPECT_EQ(model->model().states()[0].name, "sum");
    EXPECT_EQ(model->model().states()[0].shape, shape);
    EXPECT_EQ(model->inputs().size(), 1u);
    EXPECT_EQ(model->outputs().size(), 1u);
    const auto request = model->create_request(), other = model->create_request();
    EXPECT_EQ(request->state(0).to_floats(), std::vector<float>(3, 5));
    EXPECT_EQ(infer(*request, shape, 1), 6);
    EXPECT_EQ(infer(*request, shape, 2), 8);
    EXPECT_EQ(infer(*other, shape, 1), 6) << "each request has its own";
    EXPECT_EQ(request->state(0).to_floats(), std::vector<float>(3, 8));
    request->set_state(0, Tensor::of(ElementType::i32, shape, std::vector<int64_t>{10, 20, 30}));
    EXPECT_EQ(infer(*request, shape, 1), 11);
    EXPECT_EQ(request->output(0).to_floats(), (std::vector<float>{11, 21, 31}));
    request->reset_states();
    EXPECT_EQ(request->state(0).to_floats(), std::vector<float>(3, 5));
    EXPECT_EQ(infer(*request, shape, 1), 6);
    EXPECT_NE(error_of([&] { request->state(1); }).find("no state 1"), std::string::npos);
    EXPECT_NE(error_of([&] {
                request->set_state(0, filled({3, 1}, 0));
              }).find("[1,3]"),
              std::string::npos);
  }
}

// A value that an inference computes where the state is new, here twice the input.
TEST_P(States, BeginWithWhatAnInferenceComputes) {
  SmallIr ir;
  const int in = ir.input({1, 3});
  const int twice = ir.add("Add", 1, "", {in, in}, {1, 3});
  const int state = ir.add("ReadValue", 6, "variable_id=\"v\"", {twice}, {1, 3});
  const int next = ir.add("Add", 1, "", {state, in}, {1, 3});
  ir.add("Assign", 6, "variable_id=\"v\"", {next}, {1, 3});
  ir.result(next);
  const auto request = compile(ir)->create_request();
  EXPECT_NE(error_of([&] { request->state(0); }).find("is new"), std::string::npos);
  EXPECT_EQ(infer(*request, {1, 3}, 1), 3);
  EXPECT_EQ(infer(*request, {1, 3}, 10), 13);
  request->reset_states();
  EXPECT_EQ(infer(*request, {1, 3}, 10), 30);
  request->set_state(0, filled({1, 3}, 7));
  EXPECT_EQ(infer(*request, {1, 3}, 1), 8);
}

TEST_P(States, AreZeroWithoutAnInitialValue) {
  SmallIr ir;
  const int in = ir.input({2, 2});
  const int state = ir.add(
      "ReadValue", 6, "variable_id=\"v\" variable_type=\"f32\" variable_shape=\"2,2\"", {}, {2, 2});
  ir.add("Assign", 6, "variable_id=\"v\"", {in}, {});
  ir.result(ir.add("ReLU", 1, "", {state}, {2, 2}));
  const auto request = compile(ir)->create_request();
  EXPECT_EQ(infer(*request, {2, 2}, 4), 0);
  EXPECT_EQ(infer(*request, {2, 2}, 9), 4) << "the one before";
  EXPECT_EQ(infer(*request, {2, 2}, 1), 9);
}

TEST_P(States, StayWithoutAssign) {
  SmallIr ir;
  const int in = ir.input({1, 2});
  const int initial = ir.constant({1, 2}, {3, 3});
  const int state = ir.add("ReadValue", 6, "variable_id=\"v\"", {initial}, {1, 2});
  ir.result(ir.add("Add", 1, "", {in, state}, {1, 2}));
  const auto request = compile(ir)->create_request();
  EXPECT_EQ(infer(*request, {1, 2}, 1), 4);
  request->set_state(0, filled({1, 2}, 10));
  EXPECT_EQ(infer(*request, {1, 2}, 1), 11);
  EXPECT_EQ(infer(*request, {1, 2}, 2), 12);
}

// Results that an application holds make a request go on in other memory.
TEST_P(States, OutliveTheMemoryOfResults) {
  const Shape shape{1, 64, 1024};
  const auto request = compile(sum_model(shape, 0))->create_request();
  std::vector<Tensor> held;
  for (int n = 1; n <= 4; ++n) {
    EXPECT_EQ(infer(*request, shape, 1), static_cast<float>(n));
    held.push_back(request->output(0));
  }
  for (size_t n = 0; n < held.size(); ++n)
    EXPECT_EQ(held[n].data<float>()[0], static_cast<float>(n + 1));
}

// A channels-last state, next to a convolution.
TEST_P(States, HaveAnyLayout) {
  SmallIr ir;
  const Shape shape{1, 4, 6, 6};
  const int in = ir.input(shape);
  const int initial = ir.constant(shape, std::vector<float>(144, 1));
  const int state = ir.add("ReadValue", 6, "variable_id=\"v\"", {initial}, shape);
  const int sum = ir.add("Add", 1, "", {in, state}, shape);
  std::vector<float> identity(16);
  for (size_t i = 0; i < 4; ++i) identity[5 * i] = 2;
  const int weights = ir.constant({4, 4, 1, 1}, identity);
  const int twice = ir.add("Convolution", 1,
                           "strides=\"1,1\" pads_begin=\"0,0\" pads_end=\"0,0\" dilations=\"1,1\"",
                           {sum, weights}, shape);
  ir.add("Assign", 6, "variable_id=\"v\"", {twice}, shape);
  ir.result(twice);
  const auto request = compile(ir)->create_request();
  Tensor picture = Tensor::allocate(ElementType::f32, shape);
  for (int64_t i = 0; i < 144; ++i) picture.mutable_data<float>()[i] = static_cast<float>(i);
  std::vector<float> wanted(144, 1);
  for (int n = 0; n < 3; ++n) {
    request->set_input(0, picture);
    request->start();
    request->wait();
    for (size_t i = 0; i < 144; ++i) wanted[i] = 2 * (wanted[i] + static_cast<float>(i));
    EXPECT_EQ(request->output(0).to_floats(), wanted) << n;
    EXPECT_EQ(request->state(0).to_floats(), wanted) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(OnDeviceAndHost, States, testing::Bool());

TEST(StatesOfDevices, ComeFromTheCacheAsWell) {
  const TemporaryFolder folder;
  Config config = on_cpu();
  config.cache_dir = folder / "cache";
  config.cache_mode = CacheMode::optimize_speed;
  for (int n = 0; n < 2; ++n) {
    const auto request =
        CompiledModel::compile(sum_model({1, 3}, 5).read(), config)->create_request();
    EXPECT_EQ(infer(*request, {1, 3}, 1), 6) << n;
    EXPECT_EQ(infer(*request, {1, 3}, 1), 7) << n;
  }
}

TEST(StatesOfDevices, AreOfHalvesWhereActivationsAre) {
  Config config = on_cpu();
  config.precision = Precision::automatic;
  const auto request =
      CompiledModel::compile(sum_model({1, 3}, 5).read(), config)->create_request();
  for (int n = 1; n < 100; ++n) EXPECT_EQ(infer(*request, {1, 3}, 1), static_cast<float>(5 + n));
}

TEST(StatesOfDevices, LieOnOneDeviceAndHaveOneBatch) {
  const auto model = sum_model({1, 3}, 0).read();
  Config config = on_cpu();
  config.batch = 2;
  EXPECT_NE(error_of([&] { CompiledModel::compile(model, config); }).find("no other batch"),
            std::string::npos);
  config.batch = 0;
  for (const char* const list : {"MULTI:CPU", "HETERO:CPU"}) {
    config.device = list;
    EXPECT_NE(error_of([&] { CompiledModel::compile(model, config); }).find("name that one"),
              std::string::npos);
  }
  config.device = "AUTO";
  const auto request = CompiledModel::compile(model, config)->create_request();
  EXPECT_EQ(infer(*request, {1, 3}, 1), 1);
  EXPECT_EQ(infer(*request, {1, 3}, 1), 2);
}

TEST(StatesOfModels, AreRefusedWhereTheyMakeNoSense) {
  const auto read = [](const auto& build) {
    SmallIr ir;
    const int in = ir.input({1, 3});
    ir.result(build(ir, in));
    return error_of([&] { ir.read(); });
  };
  EXPECT_NE(read([](SmallIr& ir, int in) {
              ir.add("Assign", 6, "variable_id=\"a\"", {in}, {1, 3});
              return in;
            }).find("no ReadValue reads"),
            std::string::npos);
  EXPECT_NE(read([](SmallIr& ir, int in) {
              return ir.add("ReadValue", 6, "", {in}, {1, 3});
            }).find("no variable_id"),
            std::string::npos);
  EXPECT_NE(read([](SmallIr& ir, int in) {
              const int a = ir.add("ReadValue", 6, "variable_id=\"a\"", {in}, {1, 3});
              return ir.add("ReadValue", 6, "variable_id=\"a\"", {a}, {1, 3});
            }).find("another ReadValue"),
            std::string::npos);
  EXPECT_NE(read([](SmallIr& ir, int in) {
              const int a = ir.add("ReadValue", 6, "variable_id=\"a\"", {in}, {1, 3});
              const int more = ir.add("Concat", 1, "axis=\"1\"", {a, in}, {1, 6});
              ir.add("Assign", 6, "variable_id=\"a\"", {more}, {1, 6});
              return more;
            }).find("size changes"),
            std::string::npos);
  EXPECT_NE(read([](SmallIr& ir, int) {
              return ir.add("ReadValue", 6,
                            "variable_id=\"a\" variable_type=\"f32\" variable_shape=\"?,3\"", {},
                            {-1, 3});
            }).find("is open"),
            std::string::npos);
  EXPECT_NE(read([](SmallIr& ir, int) {
              return ir.add("ReadValue", 6, "variable_id=\"a\" variable_type=\"q9\"", {}, {1, 3});
            }).find("variable_type"),
            std::string::npos);
}

}  // namespace
}  // namespace clinfer
