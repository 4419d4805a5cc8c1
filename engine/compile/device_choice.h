// The devices that Config::device names, and the configuration of each.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

struct DeviceChoice {
  enum class Kind { one, multi, automatic, hetero, batch };
  Kind kind = Kind::one;
  unsigned images = 0;  // of a batch, for Kind::batch
  // Names of existing devices, each once: for Kind::one as the user wrote it, for lists the full
  // names ("GPU.0").
  std::vector<std::string> devices;
  std::vector<std::string> warnings;  // one line each
};

// Parses "GPU", "MULTI:GPU.0,GPU.1", "AUTO", "AUTO:CPU.1,CPU.0", "HETERO:GPU,CPU", "BATCH:GPU",
// "BATCH:GPU(4)". Throws
// Error{bad_argument} for a malformed list, and Error{no_device} with the list of existing devices.
DeviceChoice choose_devices(const std::string& text);

// Returns device=HETERO with the devices that TARGET_FALLBACK lists. Other configurations are
// returned unchanged.
Config with_fallback(const Config& config);

// Returns `config` for one device, with that device's own settings applied.
Config config_for(const Config& config, const std::string& device);

// Returns a line for each setting of a device that is not among `devices`.
std::vector<std::string> idle_settings(const Config& config,
                                       const std::vector<std::string>& devices);

}  // namespace clinfer
