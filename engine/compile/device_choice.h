// The devices that Config::device names, and the configuration of each.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

struct DeviceChoice {
  enum class Kind { one, multi, automatic, hetero };
  Kind kind = Kind::one;
  // Names of devices that there are, each once: of `one` as the user wrote it, else "GPU.0".
  std::vector<std::string> devices;
  std::vector<std::string> warnings;  // one line each
};

// Understands "GPU", "MULTI:GPU.0,GPU.1", "AUTO", "AUTO:CPU.1,CPU.0", "HETERO:GPU,CPU". Throws
// Error{bad_argument} for a list that cannot be one, Error{no_device} that lists what there is.
DeviceChoice choose_devices(const std::string& text);

// device=HETERO with the devices that TARGET_FALLBACK lists; others as they are.
Config with_fallback(const Config& config);

// `config` for one device, with that device's own settings.
Config config_for(const Config& config, const std::string& device);

// A line for each device setting that concerns none of the devices.
std::vector<std::string> idle_settings(const Config& config,
                                       const std::vector<std::string>& devices);

}  // namespace clinfer
