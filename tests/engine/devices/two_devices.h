// Two devices beside each other, CPU.0 and CPU.1: PoCL's "basic" and "pthread", or devices of two
// vendors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/test_files.h"
#include "tests/faults/lost_device.h"
#include "tests/kernels/op_test.h"

namespace clinfer::test {

class TwoDevices : public testing::Test {
 protected:
  void SetUp() override {
    if (list_devices().devices.size() < 2)
      GTEST_SKIP() << "POCL_DEVICES=\"basic pthread\" gives two devices; here is one";
  }
  void TearDown() override {
    lose_device(nullptr, 0);
    hold_device(nullptr);
    stall_device(nullptr);
  }

  static std::shared_ptr<const Model> ball() {
    static const auto model = Model::read(ball_model());
    return model;
  }
  static Config on(const std::string& device) {
    Config config;
    config.device = device;
    return config;
  }
  static std::shared_ptr<CompiledModel> compile(const std::string& device) {
    return CompiledModel::compile(ball(), on(device));
  }
  static std::string name(size_t device) { return list_devices().devices.at(device).name; }
  // PoCL's two devices compute the same to the last bit; those of two vendors round differently.
  static testing::AssertionResult same(const std::vector<float>& got,
                                       const std::vector<float>& want) {
    if (got.size() != want.size())
      return testing::AssertionFailure() << got.size() << " values, not " << want.size();
    const std::vector<DeviceInfo> all = list_devices().devices;
    const float apart = all.at(0).platform == all.at(1).platform ? 0 : 1e-4f;
    for (size_t i = 0; i < got.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= apart))
        return testing::AssertionFailure() << i << ": " << got[i] << ", not " << want[i];
    return testing::AssertionSuccess();
  }
  static Tensor picture(unsigned seed) {
    return random_tensor(ball()->inputs()[0].shape, 0, 255, seed);
  }
  // The outputs of one device for picture(seed).
  static std::vector<float> wanted(unsigned seed) {
    static const auto request = compile("CPU.0")->create_request();
    return infer(*request, picture(seed));
  }
  static uint64_t inferences(const CompiledModel& compiled, const std::string& device) {
    uint64_t count = 0;
    for (const DeviceUse& use : compiled.devices())
      if (use.device.id == device) count += *use.inferences;
    return count;
  }
};

}  // namespace clinfer::test
