// Prepares networks whose inferences run as graphs of CUDA.
#pragma once

#include <functional>
#include <future>
#include <memory>

#include "engine/runtime/network/device_network.h"

namespace clinfer {

// Opens the CUDA device that is the same as an OpenCL device, on a thread of its own: either
// driver takes more than 0.1 s to make a context.
class CudaOpening {
 public:
  explicit CudaOpening(const ocl::Device& device);
  // Waits. To be called once. Throws cuda::Failure with the reason if there is no such device.
  std::shared_ptr<const cuda::Device> finish() { return opened_.get(); }

 private:
  std::future<std::shared_ptr<const cuda::Device>> opened_;
};

// Throws cuda::Failure with the reason if a plan of the network cannot be launched as graphs.
void check_plans(const DeviceNetwork& network);

// Returns the kernel by which check_graphs() compares memory: a program of the whole plan.
ocl::Instantiation program_of_sums();

// Runs each plan once by OpenCL and once as graphs on the same inputs, and compares all contents of
// both memories afterwards. Calls `wait` for each of these inferences after its start. Throws
// cuda::Failure if a bit differs.
void check_graphs(const std::shared_ptr<const DeviceNetwork>& network,
                  const std::function<void(InferRequest&)>& wait);

}  // namespace clinfer
