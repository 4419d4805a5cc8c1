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

// Finds a device by name, as Config::device states it. Throws Error{no_device}; opens a context on
// the device for its probes.
ChosenDevice choose_device(const std::string& name);

// The full name of the device that `name` means ("GPU" is "GPU.0"); "" where there is none.
std::string full_device_name(const std::string& name);

}  // namespace clinfer::ocl
