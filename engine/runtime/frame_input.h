// A video frame that a request's input is made of.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/device_network.h"

namespace clinfer {

// An image of an input given as a frame: its kernels, and the memory that they read. The elements have a class
// FrameInput in this namespace.
struct DeviceFrame {
  enum class Source { host, surface, memory };

  Frame frame;
  FrameTransform transform;
  size_t index = 0, image = 0;
  KernelPlan plan;
  std::vector<cl::Kernel> kernels;
  std::vector<std::shared_ptr<const cuda::Kernel>> graph_kernels;  // likewise, once they are wanted
  std::array<DeviceMemory, 3> planes;
  std::array<int64_t, 3> starts{};  // of the planes in their buffers, in bytes
  // Bytes of the request's own buffers, kept while they are large enough; 0: the frame is lent.
  std::array<size_t, 3> plane_bytes{};
  bool in_frame_memory = false;  // what they are written from, else:
  std::array<std::shared_ptr<ocl::HostMemory>, 3> pinned;
  cl::Event copied;                            // the planes, where another queue copies them
  std::unique_ptr<cuda::Event> copied_beside;  // likewise, where another stream of CUDA does
  Source source = Source::host;
  std::array<int, 3> offsets{};  // of the planes in imported memory
};

// First byte and end of the rows of a frame's region, by plane.
std::array<std::pair<size_t, size_t>, 3> ranges_of_region(const Frame& frame);

// Calls `write(plane, at, bytes, from)` for each part of a frame in memory of the host, once the part is in
// memory that the device fetches from: the frame's own, or a copy in `pinned`, which is made part by part.
// Gives planes buffers of the network, where theirs are too small, and pinned memory by `pin(bytes)`.
void copy_parts(
    DeviceFrame& input, const DeviceNetwork& network,
    const std::function<std::shared_ptr<ocl::HostMemory>(size_t bytes)>& pin,
    const std::function<void(size_t plane, size_t at, size_t bytes, const void* from)>& write);

}  // namespace clinfer
