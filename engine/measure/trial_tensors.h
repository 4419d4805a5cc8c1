// Operands on the device for an operation to be tuned with, outside of an inference.
#pragma once

#include <vector>

#include "engine/runtime/launch.h"
#include "kernels/op.h"

namespace clinfer {

// Inputs of noise, or the constants that they are, and memory for the outputs, each laid out as the
// operation has it.
class TrialTensors {
 public:
  // Throws cl::Error.
  TrialTensors(const ocl::Context& context, const OpDesc& desc);

  // Does what CandidateRunner::Find asks for.
  BoundBuffer find(const Argument& argument) const;

 private:
  std::vector<BoundBuffer> inputs_, outputs_;
};

}  // namespace clinfer
