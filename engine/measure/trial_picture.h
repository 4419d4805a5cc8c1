// A picture on the device for the preprocess kernel to be tuned with.
#pragma once

#include "engine/runtime/launch.h"
#include "kernels/op.h"

namespace clinfer {

// A typical picture of the kind that a preprocess_op() names, in buffers or in images like those of
// surfaces, and memory for what the kernel makes of it.
class TrialPicture {
 public:
  // Throws cl::Error.
  TrialPicture(const ocl::Context& context, const OpDesc& desc);

  // Does what CandidateRunner::Find asks for.
  BoundBuffer find(const Argument& argument) const;

 private:
  std::vector<cl::Buffer> planes_;
  std::vector<cl::Image2D> images_;
  cl::Buffer out_;
  int64_t out_offset_;  // bytes
};

}  // namespace clinfer
