// Networks whose inferences run as graphs of CUDA.
#pragma once

#include <functional>
#include <memory>

#include "engine/runtime/device_network.h"

namespace clinfer {

// Opens the CUDA device that an OpenCL device is. Throws cuda::Failure that says why there is none.
std::shared_ptr<const cuda::Device> open_cuda(const ocl::Device& device);

// Loads the kernels of all plans, which are built, for CUDA. Throws cuda::Failure where it takes one of them
// not.
void load_graph_kernels(DeviceNetwork& network, unsigned threads);

// The kernel by which check_graphs() compares memory: a program of the whole plan.
ocl::Instantiation program_of_sums();

// Runs each plan once by OpenCL and once as graphs on the same inputs, and compares all that is in the
// memory of both afterwards. Calls `wait` for each of these inferences, after its start. Throws cuda::Failure
// where a bit differs.
void check_graphs(const std::shared_ptr<const DeviceNetwork>& network,
                  const std::function<void(InferRequest&)>& wait);

}  // namespace clinfer
