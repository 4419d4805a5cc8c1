// Copies on the device between a tensor as the plan has it and one as applications have it.
#pragma once

#include <vector>

#include "engine/runtime/device_network.h"
#include "engine/runtime/launch.h"

namespace clinfer {

// Copies elements to other strides or another element type. Of one thread.
class TensorCopy {
 public:
  // Throws Error{unsupported} where no kernel converts these types.
  TensorCopy(const DeviceNetwork& network, const TensorDesc& from, const TensorDesc& to);

  // The places are those of the tensors' first elements. `after`: events to wait for, or null.
  void enqueue(const cl::CommandQueue& queue, const BoundBuffer& from, const BoundBuffer& to,
               const std::vector<cl::Event>* after = nullptr);

 private:
  size_t bytes_ = 0;  // of a copy without a kernel
  KernelPlan plan_;
  std::vector<cl::Kernel> kernels_;
};

// The reason for which kernels do not use a tensor of the application, `given`, in place of their own, `stored`: "its kernels use
// f16, the application has f32".
std::string why_copied(const TensorDesc& stored, const TensorDesc& given);

}  // namespace clinfer
