// Reads how much energy a device takes. This header is for the elements, which include it besides
// engine.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// Where meters are looked for.
struct PowerSources {
  std::string sysfs = "/sys";
  std::string nvml = "libnvidia-ml.so.1";  // opened at run time
};

// One meter for one or several devices. NVIDIA's GPUs have NVML; CPUs and integrated GPUs the meter
// of their processor (RAPL, in powercap), which counts everything that it does; other GPUs that of
// their driver (hwmon). To be used by one thread at a time.
class PowerMeter {
 public:
  virtual ~PowerMeter() = default;
  // Returns the joules since the last call, or since the meter was made; nothing if it does not
  // answer any more.
  virtual std::optional<double> joules() = 0;

  struct Found {
    std::unique_ptr<PowerMeter> meter;  // null: `text` tells why there is none
    std::string text;                   // what is read: "NVML, NVIDIA H200"
  };
  // Finds the meter of devices by their ids. A device without a meter leaves all without one, for a
  // sum would be wrong.
  static Found find(const std::vector<DeviceInfo>& devices, const PowerSources& sources = {});
};

}  // namespace clinfer
