// A video frame as (a part of) a request's input.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/network/device_network.h"

namespace clinfer {

// A read of imported memory by kernels of CUDA: keeps the memory, which its maker may release
// meanwhile, and ends when they are over.
struct ImportedRead {
  explicit ImportedRead(std::shared_ptr<const cuda::Device> device)
      : over(std::move(device), true) {}
  ~ImportedRead() { wait(); }
  ImportedRead(const ImportedRead&) = delete;
  ImportedRead& operator=(const ImportedRead&) = delete;
  void wait() const noexcept;

  cuda::Event over;
  std::array<std::shared_ptr<const void>, 3> memories;
};

// One image of an input that is given as a frame, with its kernels and the memory that they read.
// (gst/ has another class FrameInput.)
struct DeviceFrame {
  enum class Source { host, surface, memory };

  Frame frame;
  FrameTransform transform;
  size_t index = 0, image = 0;
  KernelPlan plan;
  std::vector<cl::Kernel> kernels;
  // Has the same for CUDA, and none where inferences do not run as graphs, or CUDA does not load
  // one.
  std::vector<std::shared_ptr<const cuda::Kernel>> graph_kernels;
  std::array<DeviceMemory, 3> planes;
  std::array<int64_t, 3> starts{};  // of the planes within their buffers, in bytes
  // Sizes of the request's own buffers, which are kept while they are large enough; 0: the frame is
  // lent.
  std::array<size_t, 3> plane_bytes{};
  bool in_frame_memory = false;  // true: planes are copied from frame memory; false: from `pinned`
  std::array<std::shared_ptr<ocl::HostMemory>, 3> pinned;
  cl::Event copied;                            // event of the copy, if another queue makes it
  std::unique_ptr<cuda::Event> copied_beside;  // the same, if another CUDA stream makes it
  Source source = Source::host;
  std::array<int, 3> offsets{};              // of the planes within imported memory
  std::shared_ptr<const ImportedRead> read;  // read of imported memory by CUDA; or none
};

// Returns offsets of the first byte and of the end of the rows of a frame's region, by plane.
std::array<std::pair<size_t, size_t>, 3> ranges_of_region(const Frame& frame);

// Calls `write(plane, at, bytes, from)` for each part of a frame in host memory, once `from` points
// to memory that the device can read: the frame's own, or a copy in `pinned`, which is filled part
// by part. Allocates device buffers for planes whose buffers are too small, and pinned memory by
// `pin(bytes)`.
void copy_parts(
    DeviceFrame& input, const DeviceNetwork& network,
    const std::function<std::shared_ptr<ocl::HostMemory>(size_t bytes)>& pin,
    const std::function<void(size_t plane, size_t at, size_t bytes, const void* from)>& write);

}  // namespace clinfer
