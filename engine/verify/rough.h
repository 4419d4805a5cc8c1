// Errors like those that a device's number format makes, for finding out how much of a difference
// they explain.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace clinfer {

// Adds errors to the outputs of layers. Not thread-safe.
class Roughness {
 public:
  // `quantised`: the device computes quantised layers in integers.
  Roughness(Precision precision, bool quantised, unsigned seed);
  // Returns `value`, of f32, with errors; other types as they are.
  Tensor roughen(const Tensor& value);

 private:
  float next();  // evenly distributed in -1..1

  double of_element_ = 0, of_tensor_ = 0;
  uint32_t state_;
};

}  // namespace clinfer
