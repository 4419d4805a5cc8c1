// DEVICE_TIMEOUT counts the time that the device has the work, and nothing that the host, the driver
// or a compiler does before. A layer stalls the device, so that no machine is too fast or too
// slow for these tests.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "engine/runtime/requests/left_work.h"
#include "tests/engine/devices/two_devices.h"
#include "tests/says.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

// Long enough for an inference of a small network on the slowest machine.
constexpr auto kTimeout = 6s, kLonger = 7s;

// Lets the device take launches after a time, and begin them a little later.
class GoesOn {
 public:
  explicit GoesOn(std::chrono::milliseconds when)
      : thread_([when] {
          std::this_thread::sleep_for(when);
          hold_device(nullptr);
          std::this_thread::sleep_for(100ms);
          stall_device(nullptr);
        }) {}
  ~GoesOn() { thread_.join(); }

 private:
  std::thread thread_;
};

class SlowDevice : public test::TwoDevices {
 protected:
  static Config on_first() {
    Config config = on("CPU.1");
    config.device_timeout = kTimeout;
    return config;
  }
};

TEST_F(SlowDevice, WorkThatIsNotBegunIsNoAnswer) {
  Config config = on_first();
  config.device_timeout = 200ms;
  stall_device(name(1).c_str());
  try {
    CompiledModel::compile(ball(), config);
    ADD_FAILURE() << "a device that stands still";
  } catch (const NoAnswer& error) {
    EXPECT_TRUE(test::says(error.what(), "the device does not answer"));
    EXPECT_TRUE(test::says(error.what(), "200 ms"));
  }
  stall_device(nullptr);
  EXPECT_TRUE(left_work_is_over(60s));
}

TEST_F(SlowDevice, GetsItsTimeAfterTheDriverHasTakenTheWork) {
  const auto request = CompiledModel::compile(ball(), on_first())->create_request();
  request->set_input(0, picture(1));
  stall_device(name(1).c_str());
  hold_device(name(1).c_str());
  const GoesOn later(kLonger);
  request->start();
  EXPECT_TRUE(request->wait());
  EXPECT_EQ(request->output(0).to_floats(), wanted(1));
}

// Running sums are computed by the host, between two layers of the device.
std::string sums_model(const TemporaryFolder& folder) {
  const Shape shape{1, 4};
  test::SmallIr ir("sums");
  const int exp = ir.add("Exp", 1, "", {ir.input(shape)}, shape, "exp");
  const int sums = ir.add("CumSum", 3, "exclusive=\"false\" reverse=\"false\"",
                          {exp, ir.integers({1})}, shape, "sums");
  ir.result(ir.add("Sqrt", 1, "", {sums}, shape, "root"));
  return ir.write(folder);
}

TEST_F(SlowDevice, GetsItsTimeAfterALayerOfTheHost) {
  const TemporaryFolder folder;
  const auto request =
      CompiledModel::compile(Model::read(sums_model(folder)), on_first())->create_request();
  const Tensor input = Tensor::of(ElementType::f32, {1, 4}, std::vector<float>{0, 0, 0, 0});
  EXPECT_EQ(test::infer(*request, input),
            (std::vector<float>{1, std::sqrt(2.f), std::sqrt(3.f), 2}));
  request->start();  // the layers before the host's
  stall_device(name(1).c_str());
  hold_device(name(1).c_str());
  const GoesOn later(kLonger);
  EXPECT_TRUE(request->wait());
}

// A copy of this program far from the build folder finds no program that compiles for it.
TEST_F(SlowDevice, MayCompileWhatIsLaunchedFirst) {
  if (std::getenv("CLINFER_FAR_FROM_COMPILERS") == nullptr) {
    const TemporaryFolder folder;
    const std::string copy = folder / "test", layer = std::getenv("OPENCL_LAYERS");
    std::filesystem::copy_file("/proc/self/exe", copy);
    const std::string libraries = std::filesystem::path(layer).parent_path();
    EXPECT_EQ(std::system(("CLINFER_FAR_FROM_COMPILERS=1 LD_LIBRARY_PATH=" + libraries + " " +
                           copy + " --gtest_filter=SlowDevice.MayCompileWhatIsLaunchedFirst")
                              .c_str()),
              0);
    return;
  }
  const TemporaryFolder cache;
  Config config = on_first();
  config.cache_dir = cache / "programs";
  const auto compiled = CompiledModel::compile(ball(), config);
  const auto& warnings = compiled->warnings();
  if (std::none_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
        return !!test::says(warning, "compiled in the application's own process");
      }))
    GTEST_SKIP() << "clinfer is installed, and compiles";
  const auto request = compiled->create_request();
  request->set_input(0, picture(1));
  stall_device(name(1).c_str());
  const GoesOn later(kLonger);
  request->start();
  EXPECT_TRUE(request->wait());
  EXPECT_EQ(request->output(0).to_floats(), wanted(1));
}

}  // namespace
}  // namespace clinfer
