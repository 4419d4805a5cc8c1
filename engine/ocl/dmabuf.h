// Imports DMA-BUFs as OpenCL buffers, without a copy: cl_khr_external_memory with
// cl_khr_external_memory_dma_buf.
#pragma once

#include <CL/opencl.hpp>
#include <memory>
#include <span>
#include <string>

#include "engine/engine.h"
#include "engine/ocl/acquire_release.h"
#include "engine/ocl/device.h"

namespace clinfer::ocl {

class DmabufSharing;

// A DMA-BUF as a buffer of one context, or a buffer of the application. Thread-safe.
class ExternalMemory final : public ImportedMemory {
 public:
  ExternalMemory(cl::Context context, int fd, size_t bytes);  // keeps a descriptor of its own
  ExternalMemory(cl::Context context, const cl::Buffer& buffer);
  ~ExternalMemory() override;
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;
  size_t bytes() const override { return bytes_; }
  void wait() override { uses_.wait(); }
  const cl::Context& context() const { return context_; }
  const cl::Buffer& buffer() const { return buffer_; }
  // Releases the buffer even if this object is still referenced. Call it when no command uses it.
  void drop();

 private:
  friend class DmabufSharing;
  cl::Context context_;
  int fd_;  // drivers borrow it: it is open as long as the buffer; -1: a buffer of the application
  size_t bytes_;
  cl::Buffer buffer_;
  AcquireRelease uses_;
};

// The extensions on one device. Immutable.
class DmabufSharing {
 public:
  explicit DmabufSharing(const Device& device);

  // Why DMA-BUFs cannot be imported; "" when they can.
  const std::string& problem() const { return problem_; }
  // Throws Error{device_failed}.
  std::shared_ptr<ExternalMemory> import(const cl::Context& context, int fd, size_t bytes) const;
  // `memories`: one or more, each once, in an order that is the same for all uses.
  void with_acquired(const cl::CommandQueue& queue, std::span<ExternalMemory* const> memories,
                     const AcquireRelease::Use& use) const;

 private:
  std::string problem_;
  AcquireReleaseFunctions functions_;
};

}  // namespace clinfer::ocl
