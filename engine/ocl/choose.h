// Selects a device and describes it without OpenCL types, for code that plans but does not run.
#pragma once

#include <string>

#include "engine/engine.h"
#include "kernels/kernel.h"

namespace clinfer::ocl {

struct ChosenDevice {
  DeviceInfo info;
  DeviceTraits traits;
};

// Finds a device by name, as in Config::device. Opens a context on it for probing. Throws
// Error{no_device}.
ChosenDevice choose_device(const std::string& name);

// Returns the full name of the device that `name` means ("GPU" is "GPU.0"); "" if there is none.
std::string full_device_name(const std::string& name);

}  // namespace clinfer::ocl
