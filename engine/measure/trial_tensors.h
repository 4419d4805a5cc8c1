// Operands on the device for tuning an operation outside of an inference.
#pragma once

#include <vector>

#include "engine/runtime/network/launch.h"
#include "kernels/op.h"

namespace clinfer {

// Inputs filled with noise or with the operation's constants, and memory for the outputs, in the
// operation's layouts.
class TrialTensors {
 public:
  // Throws cl::Error.
  TrialTensors(const ocl::Context& context, const OpDesc& desc);

  // Implements CandidateRunner::Find.
  BoundBuffer find(const Argument& argument) const;

 private:
  std::vector<BoundBuffer> inputs_, outputs_;
};

}  // namespace clinfer
