// An application that traps floating-point exceptions loads and runs models. Also run as such a process from its first
// instruction on (tests/engine/preload/trap_floats.cpp), so that threads of ours and of the driver would inherit it.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "engine/async.h"
#include "tests/engine/ball_model.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kTrapped = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;

class TrappedFloats : public testing::Test {
 protected:
  TrappedFloats() {
    std::fegetenv(&before_);
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(kTrapped);
  }
  ~TrappedFloats() override {
    EXPECT_EQ(fegetexcept(), kTrapped) << "the application's traps are gone";
    std::fesetenv(&before_);
  }

  // The logarithms and the powers of e of four numbers.
  std::string model() const {
    const Shape shape{1, 4};
    test::SmallIr ir("log");
    const int in = ir.input(shape);
    ir.result(ir.add("Log", 1, "", {in}, shape));
    ir.result(ir.add("Exp", 1, "", {in}, shape));
    return ir.write(folder_);
  }

  static void expect_no_numbers(InferRequest& request) {
    const std::vector<float> logarithms = request.output(0).to_floats(),
                             powers = request.output(1).to_floats();
    EXPECT_EQ(logarithms[0], -kInfinity);
    EXPECT_TRUE(std::isnan(logarithms[1]));
    EXPECT_EQ(logarithms[3], 0);
    EXPECT_EQ(powers[0], 1);
    EXPECT_EQ(powers[2], kInfinity);
  }

  const Tensor numbers_ = Tensor::of(ElementType::f32, {1, 4}, std::vector<float>{0, -1, 1000, 1});

 private:
  const TemporaryFolder folder_;
  std::fenv_t before_;
};

TEST_F(TrappedFloats, DoNotEndADevicesInferences) {
  const auto compiled = CompiledModel::compile(Model::read(model()), {});
  const auto request = compiled->create_request();
  request->set_input(0, numbers_);
  request->start();
  request->wait();
  expect_no_numbers(*request);
}

TEST_F(TrappedFloats, DoNotEndTheFirstTier) {
  const auto compiled = CompiledModel::compile_first_tier(Model::read(model()), {});
  const auto request = compiled->create_request();
  request->set_input(0, numbers_);
  request->start();
  request->wait();
  expect_no_numbers(*request);
}

// The thread that waits is the request's own, and begins as the application's does.
TEST_F(TrappedFloats, DoNotEndRequestsThatCall) {
  const auto compiled = CompiledModel::compile(Model::read(model()), {});
  AsyncRequest request(compiled->create_request());
  request.request().set_input(0, numbers_);
  request.set_completed([](InferRequest& of, const std::exception_ptr& error) {
    EXPECT_EQ(error, nullptr);
    expect_no_numbers(of);
  });
  request.start();
  request.wait();
}

TEST_F(TrappedFloats, DoNotEndANetworkThatIsCompiledAside) {
  Config config;
  config.cache_dir = "";
  const auto task = CompiledModel::begin(Model::read(test::ball_model()), config);
  const auto request = task->wait()->create_request();
  const std::vector<uint8_t> grey(256 * 192, 10);
  request->set_frame(0, {PixelFormat::gray8, 256, 192, {grey.data()}, {256}}, {});
  request->start();
  request->wait();
  EXPECT_FALSE(request->output(0).empty());
}

}  // namespace
}  // namespace clinfer
