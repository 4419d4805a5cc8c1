// A picture on the device, for tuning the preprocess kernel.
#pragma once

#include "engine/runtime/network/launch.h"
#include "kernels/op.h"

namespace clinfer {

// A typical picture of the kind that a preprocess_op() names, in buffers or in images like those of
// surfaces, and memory for the kernel's result.
class TrialPicture {
 public:
  // Throws cl::Error.
  TrialPicture(const ocl::Context& context, const OpDesc& desc);

  // Implements CandidateRunner::Find.
  BoundBuffer find(const Argument& argument) const;

 private:
  std::vector<cl::Buffer> planes_;
  std::vector<cl::Image2D> images_;
  cl::Buffer out_;
  int64_t out_offset_;  // in bytes
};

}  // namespace clinfer
