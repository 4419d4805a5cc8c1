// Compiles a model for several devices at the same time.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/compile/first_tier.h"
#include "engine/runtime/compiled_model.h"

namespace clinfer {

// The outcome of the compilation for one device.
struct CompiledFor {
  std::string device;
  std::shared_ptr<DeviceModel> model;  // null if it failed or was no longer needed
  std::exception_ptr error;
};

struct CompileAll {
  std::shared_ptr<const Model> model;
  std::vector<Config> configs;  // one for each device, the most wanted device first
  // True if one model suffices. The others are then given up once the first device is ready;
  // without `offer`, once any device is ready.
  bool one_is_enough = false;
  Progress progress;
  Offer offer;  // receives the first tier, and models that are ready before more wanted ones

  // Returns the outcomes in the order of `configs`. Throws Error{cancelled} if `progress` returns
  // false, and the first device's error if all devices failed.
  std::vector<CompiledFor> run() const;
};

std::string message_of(const std::exception_ptr& error);

}  // namespace clinfer
