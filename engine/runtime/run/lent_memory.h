// Host memory of an application as a buffer of a device that shares the host's memory.
#pragma once

#include <CL/opencl.hpp>
#include <memory>
#include <string>

#include "engine/ocl/device.h"

namespace clinfer {

// Integrated GPUs map host memory of applications by whole pages, from a page's beginning to the
// end of a cache line. In bytes.
inline constexpr size_t kSharedPage = 4096, kSharedLine = 64;

// The memory is mapped, as OpenCL calls it, while the application may use it: from the beginning
// on, but not between lend() and the end of the commands that take_back() follows.
class LentMemory {
 public:
  // Returns the memory as a buffer; null if the device does not share it (why_not()). `reads`:
  // kernels read the memory, else they write it. Waits for the commands in the queue. Throws
  // cl::Error.
  static std::unique_ptr<LentMemory> make(const ocl::Context& context,
                                          const cl::CommandQueue& queue, void* data, size_t bytes,
                                          bool reads);
  // Returns why make() returns null for this memory.
  static std::string why_not(const ocl::Context& context, const void* data, size_t bytes);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  const cl::Buffer& buffer() const { return buffer_; }
  // Hand the memory to the commands that follow in the queue, and back after those before. Do
  // nothing if that is done already. Throw cl::Error.
  void lend();
  void take_back();

 private:
  LentMemory(cl::Buffer buffer, const cl::CommandQueue& queue, size_t bytes, bool reads);
  void map(cl_bool waits);

  const cl::Buffer buffer_;
  const cl::CommandQueue queue_;
  const size_t bytes_;
  const bool reads_;
  void* mapped_ = nullptr;  // null while the memory is lent
};

}  // namespace clinfer
