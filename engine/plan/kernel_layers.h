// The layers of a plan that kernels compute, those in loops as well.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace clinfer {

// A step of the plan that a kernel family computes, or one of a loop's body.
struct KernelLayer {
  const Step* step = nullptr;
  std::string name;   // LOOP/LAYER in a loop
  size_t number = 0;  // in the plan, of the step or of its loop
  bool in_loop = false;
  int64_t times = 1;  // that one inference runs it
};

// All of them, in the order of execution. They point into the plan.
std::vector<KernelLayer> kernel_layers(const Plan& plan);

}  // namespace clinfer
