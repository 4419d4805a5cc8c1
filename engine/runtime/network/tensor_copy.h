// Copies on the device between a tensor of the plan and the same tensor in the application's form.
#pragma once

#include <vector>

#include "engine/runtime/network/device_network.h"
#include "engine/runtime/network/launch.h"

namespace clinfer {

// Copies elements to other strides or another element type. Not thread-safe.
class TensorCopy {
 public:
  // Throws Error{unsupported} if no kernel converts between these types.
  TensorCopy(const DeviceNetwork& network, const TensorDesc& from, const TensorDesc& to);

  // Enqueues the copy. `from` and `to` point to the first elements of the tensors. `after`: events
  // to wait for, or null.
  void enqueue(const cl::CommandQueue& queue, const BoundBuffer& from, const BoundBuffer& to,
               const std::vector<cl::Event>* after = nullptr);

 private:
  void make_kernels();

  const DeviceNetwork& network_;
  const TensorDesc from_, to_;
  size_t bytes_ = 0;  // of a plain copy, which needs no kernel between two buffers
  KernelPlan plan_;
  std::vector<cl::Kernel> kernels_;
};

// Returns what differs between `stored`, a tensor as kernels use it, and `given`, that of the
// application: "its kernels use f16, the application has f32"; "" if they lie alike.
std::string why_copied(const TensorDesc& stored, const TensorDesc& given);

}  // namespace clinfer
