// Each failure while a model is loaded, run or tuned ends in an error or in the right result.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.h"
#include "tests/engine/test_files.h"
#include "tests/faults/runner.h"
#include "tuning/tuning_cache.h"

namespace clinfer {
namespace {

constexpr int64_t kChannels = 4;

// The model is softmax over 4 channels, then the mean over the picture: equal inputs give 1/4.
Tensor equal_inputs(const CompiledModel& compiled) {
  const Shape& shape = compiled.inputs()[0].shape;
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  return Tensor::of(ElementType::f32, shape,
                    std::vector<float>(static_cast<size_t>(elements), 0.5f));
}

std::string infer(const CompiledModel& compiled, InferRequest& request) {
  request.set_input(0, equal_inputs(compiled));
  request.start();
  request.wait();
  const std::vector<float> values = request.output(0).to_floats();
  if (values.size() != kChannels) return std::to_string(values.size()) + " values";
  for (const float value : values)
    if (std::fabs(value - 0.25f) > 1e-3f) return "a value is " + std::to_string(value);
  return "";
}

class Faults : public testing::Test {
 protected:
  Faults() { config_.cache_dir = folder_ / "cache"; }

  Scenario loading() {
    return {[] {},
            [this] {
              const auto compiled = CompiledModel::compile(Model::read(model_), config_);
              return infer(*compiled, *compiled->create_request());
            }};
  }

  // Nothing is in the cache, so that it is written.
  Scenario storing() {
    Scenario scenario = loading();
    scenario.run = [this, load = scenario.run] {
      std::filesystem::remove_all(*config_.cache_dir);
      return load();
    };
    return scenario;
  }

  Scenario running() {
    return {[this] {
              compiled_ = CompiledModel::compile(Model::read(model_), config_);
              request_ = compiled_->create_request();
            },
            [this] { return infer(*compiled_, *request_); }};
  }

  Scenario tuning() {
    return {[this] {
              config_.tuning_mode = TuningMode::retune;
              config_.tuning_file = folder_ / "t.json";
              config_.tuning_db = false;
              config_.tuning_seconds = 0.01;
            },
            [this]() -> std::string {
              const auto compiled = CompiledModel::compile(Model::read(model_), config_);
              TuningCache::read(config_.tuning_file);  // whole, whatever failed
              return infer(*compiled, *compiled->create_request());
            }};
  }

  const std::string model_ = test_data("models/tunable.xml");
  TemporaryFolder folder_;
  Config config_;
  std::shared_ptr<CompiledModel> compiled_;
  std::unique_ptr<InferRequest> request_;
};

TEST_F(Faults, AllocationsWhileLoading) { fail_each(kAllocation, 60, loading()); }
TEST_F(Faults, AllocationsWhileRunning) { fail_each(kAllocation, 60, running()); }
TEST_F(Faults, AllocationsWhileTuning) { fail_each(kAllocation, 10, tuning()); }
TEST_F(Faults, ThreadsWhileLoading) { fail_each(kThread, 20, loading()); }
TEST_F(Faults, ThreadsWhileTuning) { fail_each(kThread, 5, tuning()); }
TEST_F(Faults, FilesWhileLoading) { fail_each(kFile, 60, loading()); }
TEST_F(Faults, FilesWhileStoring) { fail_each(kFile, 60, storing()); }
TEST_F(Faults, OpenClCallsWhileStoring) { fail_each(kOpenCl, 60, storing()); }
TEST_F(Faults, FilesWhileTuning) { fail_each(kFile, 10, tuning()); }
TEST_F(Faults, OpenClCallsWhileLoading) { fail_each(kOpenCl, 100, loading()); }
TEST_F(Faults, OpenClCallsWhileRunning) { fail_each(kOpenCl, 100, running()); }
TEST_F(Faults, OpenClCallsWhileTuning) { fail_each(kOpenCl, 10, tuning()); }

}  // namespace
}  // namespace clinfer
