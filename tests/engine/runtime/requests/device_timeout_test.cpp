// Devices that take longer than they may.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "engine/engine.h"
#include "engine/runtime/requests/left_work.h"
#include "kernels/base/no_answer.h"
#include "tests/engine/products_model.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kProducts = 24;  // of 2048 x 2048 x 2048: seconds for a few cores

TEST(DeviceTimeout, IsAnErrorThatNamesDeviceAndLayer) {
  const TemporaryFolder folder;
  const auto model = Model::read(test::products_model(folder, 2048, kProducts));
  Config config;
  config.set("DEVICE_TIMEOUT", "100");
  EXPECT_EQ(config.device_timeout, 100ms);
  auto begin = Clock::now();
  const Progress progress = [&](const std::string&, size_t, size_t) {
    begin = Clock::now();  // of the first inference, at last
    return true;
  };
  try {
    CompiledModel::compile(model, config, progress);
    FAIL() << "the device is too fast for this test";
  } catch (const NoAnswer& error) {
    EXPECT_LT(Clock::now() - begin, 30s);  // 0.1 on an idle machine
    for (const char* part :
         {"the device does not answer", "products", "100 ms", "MatMul", "8.6e+09"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_TRUE(left_work_is_over(60s));
}

TEST(DeviceTimeout, TheFirstInferenceIsCancelled) {
  const TemporaryFolder folder;
  const auto model = Model::read(test::products_model(folder, 2048, kProducts));
  Config config;
  config.set("DEVICE_TIMEOUT", "0");
  Clock::time_point begin{};
  bool cancels = false;
  const Progress progress = [&](const std::string& what, size_t, size_t) {
    if (what != "running the first inference") return true;
    if (begin == Clock::time_point{}) begin = Clock::now();  // the question comes repeatedly
    return !cancels;
  };
  CompiledModel::compile(model, config, progress);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  cancels = true;
  begin = {};
  try {
    CompiledModel::compile(model, config, progress);
    FAIL() << "the device is too fast for this test";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    EXPECT_LT(Clock::now() - begin, 30s);  // 0.2 on an idle machine
  }
  EXPECT_TRUE(left_work_is_over(std::max<std::chrono::milliseconds>(1s, whole / 2)))
      << "the products are cut into parts; all of them take " << whole.count() << " ms";
}

TEST(DeviceTimeout, TheProgramEnds) {
  const char* program = std::getenv("CLINFER_PROGRAM");
  if (program == nullptr) GTEST_SKIP() << "CLINFER_PROGRAM names no program";
  const TemporaryFolder folder;
  const std::string command = std::string(program) + " bench " +
                              test::products_model(folder, 2048, kProducts) +
                              " --config DEVICE_TIMEOUT=100 >" + folder / "output" + " 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  const std::string output = read_file(folder / "output");
  EXPECT_NE(output.find("the device does not answer"), std::string::npos) << output;
}

TEST(DeviceTimeout, RefusesWhatIsNoTime) {
  Config config;
  EXPECT_THROW(config.set("DEVICE_TIMEOUT", "soon"), Error);
  EXPECT_THROW(config.set("DEVICE_TIMEOUT", "-1"), Error);
}

}  // namespace
}  // namespace clinfer
