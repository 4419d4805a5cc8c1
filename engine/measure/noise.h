// Values for measurements: cheap, the same in every run, and not constant, because constant inputs
// make some kernels faster.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace clinfer {

class Noise {
 public:
  unsigned next() {  // returns 0..255
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 24;
  }

 private:
  uint32_t state_ = 1;
};

// Returns values between 0 and 1 for floats, and 1 for integers.
Tensor noise_tensor(ElementType type, const Shape& shape);

// Returns values like those of an 8-bit picture for image inputs (rank 4 and 5), noise_tensor() for
// others.
Tensor synthetic_tensor(const Port& port);

// Sets all inputs of an idle request; `inputs` are those of its model.
void set_noise(InferRequest& request, const std::vector<Port>& inputs);

}  // namespace clinfer
