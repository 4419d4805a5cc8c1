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

// The outcome for one device.
struct CompiledFor {
  std::string device;
  std::shared_ptr<DeviceModel> model;  // null: it failed, or was not needed any more
  std::exception_ptr error;
};

struct CompileAll {
  std::shared_ptr<const Model> model;
  std::vector<Config> configs;  // one a device, the one that is wanted most first
  // Whether one model is enough: then the others are given up once the first device is ready, and
  // without `offer` once any is.
  bool one_is_enough = false;
  Progress progress;
  Offer offer;  // gets the first tier, and models that are ready before those that are wanted more

  // In the order of `configs`. Throws Error{cancelled} if `progress` says no, and what the first
  // device failed with if all did.
  std::vector<CompiledFor> run() const;
};

std::string message_of(const std::exception_ptr& error);

}  // namespace clinfer
