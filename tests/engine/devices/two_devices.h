// Two devices beside each other: PoCL's "basic" and "pthread", which are CPU.0 and CPU.1, compute the
// same to the last bit.
#pragma once

#include <gtest/gtest.h>

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
