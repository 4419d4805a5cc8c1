// Imports memory of other APIs as OpenCL buffers, without a copy, by cl_khr_external_memory with
// cl_khr_external_memory_dma_buf or cl_khr_external_memory_opaque_fd.
#pragma once

#include <CL/opencl.hpp>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/engine.h"
#include "engine/ocl/acquire_release.h"
#include "engine/ocl/device.h"

namespace clinfer::ocl {

class MemorySharing;

// Memory of another API as a buffer of one context, or a buffer of the application. Thread-safe.
class ExternalMemory final : public ImportedMemory {
 public:
  ExternalMemory(cl::Context context, int fd, size_t bytes);  // duplicates the descriptor
  ExternalMemory(cl::Context context, const cl::Buffer& buffer);
  ~ExternalMemory() override;
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;
  size_t bytes() const override { return bytes_; }
  void wait() override;
  const cl::Context& context() const { return context_; }
  const cl::Buffer& buffer() const { return buffer_; }
  // Releases the buffer even if this object is still referenced. Call it when no command uses it.
  void drop();

  // The address at which another interface of the driver has the memory, as long as `owner` lives.
  void share(uint64_t address, std::shared_ptr<const void> owner);
  uint64_t address() const { return address_; }  // 0: it is not shared
  const std::shared_ptr<const void>& owner() const { return owner_; }
  // A use of that address in the stream `of`, after all earlier ones there. wait() calls
  // `until_over`.
  void note_use(const void* of, std::function<void()> until_over);

 private:
  friend class MemorySharing;
  cl::Context context_;
  int fd_;  // of a DMA-BUF. Drivers borrow it, so it stays open as long as the buffer exists.
  size_t bytes_;
  cl::Buffer buffer_;
  AcquireRelease uses_;
  uint64_t address_ = 0;
  std::shared_ptr<const void> owner_;                        // of the address
  std::mutex mutex_;                                         // guards what follows
  std::map<const void*, std::function<void()>> other_uses_;  // the last one of each stream
};

// The extensions of one device for external memory. Immutable.
class MemorySharing {
 public:
  explicit MemorySharing(const Device& device);

  // Returns why memory of this kind cannot be imported; "" if it can.
  const std::string& problem(MemoryHandle kind) const {
    return problems_[static_cast<size_t>(kind)];
  }
  // Throws Error{device_failed}.
  std::shared_ptr<ExternalMemory> import(const cl::Context& context, MemoryHandle kind, int fd,
                                         size_t bytes) const;
  // Imports memory that this process exported from another interface of the driver. OpenCL has
  // acquired it until the last holder releases it; callers must order the uses themselves. The
  // driver takes over the descriptor. Throws cl::Error.
  std::shared_ptr<const cl::Buffer> import_own(const Context& context, int fd, size_t bytes) const;
  // `memories`: one or more, each once, and in the same order in all uses.
  void with_acquired(const cl::CommandQueue& queue, std::span<ExternalMemory* const> memories,
                     const AcquireRelease::Use& use) const;

 private:
  std::array<std::string, 2> problems_;  // by MemoryHandle
  AcquireReleaseFunctions functions_;
};

}  // namespace clinfer::ocl
