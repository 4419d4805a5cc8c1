// Lists the layers of a plan that kernels compute, including those in loops.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace clinfer {

// A step of the plan, or of a loop's body, that a kernel family computes.
struct KernelLayer {
  const Step* step = nullptr;
  std::string name;   // LOOP/LAYER for a layer in a loop
  size_t number = 0;  // index in the plan, of the step or of its loop
  bool in_loop = false;
  int64_t times = 1;  // how often one inference runs it
};

// Returns all such layers in the order of execution. They point into the plan.
std::vector<KernelLayer> kernel_layers(const Plan& plan);

}  // namespace clinfer
