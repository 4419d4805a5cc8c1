// Made-up values for measurements: cheap, the same in every run, and not constant (constant inputs
// make some kernels faster than they are).
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace clinfer {

class Noise {
 public:
  unsigned next() {  // 0..255
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 24;
  }

 private:
  uint32_t state_ = 1;
};

// Values between 0 and 1 for floats, 1 for integers.
Tensor noise_tensor(ElementType type, const Shape& shape);

// Values as of an 8-bit picture for image inputs (rank 4 and 5), noise_tensor() for others.
Tensor synthetic_tensor(const Port& port);

// Sets all inputs of an idle request of a model that has these.
void set_noise(InferRequest& request, const std::vector<Port>& inputs);

}  // namespace clinfer
