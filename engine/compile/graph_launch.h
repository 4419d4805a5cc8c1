// Prepares networks whose inferences run as graphs of CUDA.
#pragma once

#include <functional>
#include <memory>

#include "engine/runtime/device_network.h"

namespace clinfer {

// Opens the CUDA device that is the same as an OpenCL device. Throws cuda::Failure with the reason
// if there is none.
std::shared_ptr<const cuda::Device> open_cuda(const ocl::Device& device);

// Loads the built kernels of all plans for CUDA. Throws cuda::Failure if it does not take one of
// them.
void load_graph_kernels(DeviceNetwork& network, unsigned threads);

// Returns the kernel by which check_graphs() compares memory: a program of the whole plan.
ocl::Instantiation program_of_sums();

// Runs each plan once by OpenCL and once as graphs on the same inputs, and compares all contents of
// both memories afterwards. Calls `wait` for each of these inferences after its start. Throws
// cuda::Failure if a bit differs.
void check_graphs(const std::shared_ptr<const DeviceNetwork>& network,
                  const std::function<void(InferRequest&)>& wait);

}  // namespace clinfer
