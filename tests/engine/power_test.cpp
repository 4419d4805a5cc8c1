// Meters of power: files like those of Linux in a folder, and a stand-in for NVIDIA's library. The device is
// PoCL as a GPU.
#include "engine/power.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

DeviceInfo device() {
  const DeviceList list = list_devices();
  EXPECT_FALSE(list.devices.empty());
  return list.devices.at(0);
}

DeviceInfo processor() {
  DeviceInfo info = device();
  info.is_cpu = true;
  return info;
}

DeviceInfo card(const std::string& vendor) {
  DeviceInfo info = device();
  info.is_cpu = info.is_integrated = false;
  info.vendor = vendor;
  return info;
}

class Power : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / file).parent_path());
    folder_.write(file, content);
  }
  void package(const std::string& zone, const std::string& name, const std::string& energy) {
    write("class/powercap/" + zone + "/name", name + "\n");
    write("class/powercap/" + zone + "/energy_uj", energy + "\n");
    write("class/powercap/" + zone + "/max_energy_range_uj", "10000000\n");
  }
  void hwmon(const std::string& number, const std::string& name, const std::string& file,
             const std::string& value) {
    write("class/hwmon/" + number + "/name", name + "\n");
    write("class/hwmon/" + number + "/" + file, value + "\n");
  }
  PowerMeter::Found find(const std::vector<DeviceInfo>& devices) {
    return PowerMeter::find(devices, {folder_ / "", CLINFER_NVML_STAND_IN});
  }
  TemporaryFolder folder_;
};

TEST_F(Power, ProcessorsCountTheirPackages) {
  package("intel-rapl:0", "package-0", "1000000");
  package("intel-rapl:1", "package-1", "9000000");
  package("intel-rapl-mmio:0", "package-0", "1000000");  // the same one
  package("intel-rapl:0:0", "core", "500000");           // a part of it
  package("intel-rapl:2", "psys", "500000");
  const PowerMeter::Found found = find({processor(), processor()});
  ASSERT_NE(found.meter, nullptr) << found.text;
  EXPECT_EQ(found.text, "RAPL, the processor");
  for (const char* zone : {"intel-rapl:0", "intel-rapl-mmio:0"})
    package(zone, "package-0", "3500000");
  package("intel-rapl:1", "package-1", "2000000");  // it began at 0 again
  EXPECT_NEAR(found.meter->joules().value_or(-1), 2.5 + 3, 1e-9);
  EXPECT_NEAR(found.meter->joules().value_or(-1), 0, 1e-9);
  std::filesystem::remove(folder_ / "class/powercap/intel-rapl:1/energy_uj");
  EXPECT_FALSE(found.meter->joules());
}

TEST_F(Power, WhatCannotBeReadIsSaid) {
  const PowerMeter::Found none = find({processor()});
  EXPECT_EQ(none.meter, nullptr);
  EXPECT_NE(none.text.find("cannot be measured"), std::string::npos) << none.text;
  EXPECT_NE(none.text.find("powercap"), std::string::npos) << none.text;
  package("intel-rapl:0", "package-0", "");
  const PowerMeter::Found unreadable = find({processor()});
  EXPECT_EQ(unreadable.meter, nullptr);
  EXPECT_NE(unreadable.text.find("energy_uj cannot be read"), std::string::npos) << unreadable.text;
}

TEST_F(Power, DriversOfGpusCountOrTellTheirPower) {
  hwmon("hwmon0", "coretemp", "power1_input", "5");
  EXPECT_EQ(find({card("Intel")}).meter, nullptr);
  hwmon("hwmon1", "xe", "energy1_input", "7000000");
  const PowerMeter::Found counts = find({card("Intel")});
  ASSERT_NE(counts.meter, nullptr) << counts.text;
  hwmon("hwmon1", "xe", "energy1_input", "11000000");
  EXPECT_NEAR(counts.meter->joules().value_or(-1), 4, 1e-9);
  hwmon("hwmon2", "amdgpu", "power1_average", "50000000");
  EXPECT_NE(find({card("Intel")}).text.find("several"), std::string::npos);
  std::filesystem::remove_all(folder_ / "class/hwmon/hwmon1");
  const PowerMeter::Found tells = find({card("AMD")});
  ASSERT_NE(tells.meter, nullptr) << tells.text;
  const auto begun = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double joules = tells.meter->joules().value_or(-1);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  EXPECT_GE(joules, 50 * 0.05);
  EXPECT_LE(joules, 50 * (seconds + 0.5));
}

TEST_F(Power, NvidiasLibraryIsAskedByTheDevicesUuid) {
  const auto text_in_mode = [&](const char* mode) {
    setenv("CLINFER_NVML", mode, 1);
    return find({card("NVIDIA Corporation")});
  };
  const PowerMeter::Found counts = text_in_mode("");
  ASSERT_NE(counts.meter, nullptr) << counts.text;
  EXPECT_TRUE(counts.text.starts_with("NVML, GPU-")) << counts.text;
  EXPECT_NEAR(counts.meter->joules().value_or(-1), 5, 1e-9);
  const PowerMeter::Found tells = text_in_mode("old");
  ASSERT_NE(tells.meter, nullptr) << tells.text;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(tells.meter->joules().value_or(-1), 250 * 0.02);
  EXPECT_NE(text_in_mode("no meter").text.find("does not measure"), std::string::npos);
  EXPECT_NE(text_in_mode("other device").text.find("does not know"), std::string::npos);
  EXPECT_NE(text_in_mode("broken").text.find("does not start"), std::string::npos);
  EXPECT_NE(PowerMeter::find({card("NVIDIA Corporation")}, {folder_ / "", "/none.so"})
                .text.find("cannot be opened"),
            std::string::npos);
}

}  // namespace
}  // namespace clinfer
