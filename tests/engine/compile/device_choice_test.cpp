// Names of devices and lists of them, and settings of single devices.
#include "engine/compile/device_choice.h"

#include "tests/engine/devices/two_devices.h"
#include "tests/says.h"

namespace clinfer {
namespace {

using test::says;
using Kind = DeviceChoice::Kind;
using Names = std::vector<std::string>;

class DeviceChoices : public test::TwoDevices {};

std::string refusal(const std::string& text) {
  try {
    choose_devices(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST_F(DeviceChoices, OneDeviceIsLeftAsItIsWritten) {
  const DeviceChoice choice = choose_devices("GPU.7");
  EXPECT_EQ(choice.kind, Kind::one);
  EXPECT_EQ(choice.devices, Names{"GPU.7"});
}

TEST_F(DeviceChoices, ListsGetFullNames) {
  const DeviceChoice multi = choose_devices("MULTI:CPU.1, CPU");
  EXPECT_EQ(multi.kind, Kind::multi);
  EXPECT_EQ(multi.devices, (Names{"CPU.1", "CPU.0"}));
  EXPECT_TRUE(multi.warnings.empty());
  EXPECT_EQ(choose_devices("AUTO:CPU.1,CPU.0").kind, Kind::automatic);
  EXPECT_EQ(choose_devices("HETERO:CPU.0,CPU.1").kind, Kind::hetero);
}

TEST_F(DeviceChoices, AutoAloneIsTheFirstOfEachKind) {
  Names first;
  for (const bool cpu : {false, true})
    for (const DeviceInfo& device : list_devices().devices)
      if (device.is_cpu == cpu) {
        first.push_back(device.id);
        break;
      }
  EXPECT_EQ(choose_devices("AUTO").devices, first);
}

TEST_F(DeviceChoices, ADeviceThatIsNamedTwiceCountsOnce) {
  const DeviceChoice choice = choose_devices("MULTI:CPU,CPU.0,CPU.1");
  EXPECT_EQ(choice.devices, (Names{"CPU.0", "CPU.1"}));
  ASSERT_EQ(choice.warnings.size(), 1u);
  EXPECT_TRUE(says(choice.warnings[0], "CPU.0 is CPU.0, which is in the list already"));
}

TEST_F(DeviceChoices, WithoutAGpuACpuTakesItsPlaceWithAWarning) {
  if (!list_devices().devices[0].is_cpu) GTEST_SKIP() << "there is a GPU";
  for (const char* name : {"GPU", "GPU.0"}) {
    const DeviceChoice choice = choose_devices(std::string("MULTI:CPU.1,") + name);
    EXPECT_EQ(choice.devices, (Names{"CPU.1", "CPU.0"}));
    ASSERT_EQ(choice.warnings.size(), 1u);
    EXPECT_TRUE(says(choice.warnings[0], "there is no GPU: CPU.0, "));
    // For one device, the compiled model says it, once in a process.
  }
  EXPECT_TRUE(says(refusal("MULTI:CPU,GPU.1"), "no OpenCL device \"GPU.1\": found CPU.0 = "));
}

TEST_F(DeviceChoices, ListsThatCannotBeAreRefused) {
  EXPECT_TRUE(says(refusal("MULTI"), "name the devices, as in MULTI:GPU,CPU"));
  EXPECT_TRUE(says(refusal("HETERO:CPU,,CPU.1"), "a device is missing"));
  EXPECT_TRUE(says(refusal("AUTO:"), "a device is missing"));
  EXPECT_TRUE(says(refusal("CPU.0,CPU.1"), "MULTI:A,B, AUTO:A,B or HETERO:A,B"));
  EXPECT_TRUE(says(refusal("MULTI:CPU.9,CPU"), "CPU.9"));
}

TEST_F(DeviceChoices, SettingsOfOneDevice) {
  Config config;
  config.set("GPU_THROUGHPUT_STREAMS", "3");
  config.set("CPU.1.GPU_THROUGHPUT_STREAMS", "2");
  config.set("CPU.DEVICE_TIMEOUT", "77");
  config.set("GPU.5.PERF_COUNT", "YES");
  EXPECT_EQ(config_for(config, "CPU.0").streams, 3u);
  EXPECT_EQ(config_for(config, "CPU.0").device_timeout.count(), 77);
  EXPECT_EQ(config_for(config, "CPU.1").streams, 2u);
  EXPECT_EQ(config_for(config, "CPU.1").device_timeout.count(), 10000);
  EXPECT_EQ(config_for(config, "CPU.1").device, "CPU.1");
  config.device = "MULTI:CPU.0,CPU.1";
  const auto idle = idle_settings(config, {"CPU.0", "CPU.1"});
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_TRUE(says(idle[0], "GPU.5.PERF_COUNT has no effect"));
  EXPECT_THROW(config.set("CPU.1.NO_SUCH_KEY", "1"), Error);
  EXPECT_THROW(config.set("CPU.1.PERF_COUNT", "maybe"), Error);
  EXPECT_THROW(config.set("FPGA.PERF_COUNT", "YES"), Error);
}

}  // namespace
}  // namespace clinfer
