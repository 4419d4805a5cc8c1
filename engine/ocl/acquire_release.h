// Acquire and release of external memory around each use by OpenCL.
#pragma once

#include <CL/opencl.hpp>
#include <functional>
#include <mutex>
#include <span>

namespace clinfer::ocl {

// A function of an extension; null where the platform has none of this name.
template <typename Function>
Function extension_function(const cl::Platform& platform, const char* name) {
  return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
}

// The functions of an extension that acquire and release, and their names for messages; null for
// memory that OpenCL always has.
struct AcquireReleaseFunctions {
  using Enqueue = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                       const cl_event*, cl_event*);
  Enqueue acquire = nullptr, release = nullptr;
  const char* acquire_name = "";
  const char* release_name = "";
};

// The uses of one piece of memory, one after the other. Thread-safe.
class AcquireRelease {
 public:
  // Enqueues the use of the memory after the event `acquired`, if there is one; returns the event of
  // its end.
  using Use = std::function<cl::Event(const cl::Event& acquired)>;

  // Acquires the objects on `queue`, calls `use` and releases them afterwards, ordered by events.
  // While another queue uses them, the device waits. Throws cl::Error.
  void with_acquired(const AcquireReleaseFunctions& functions, const cl::CommandQueue& queue,
                     std::span<const cl_mem> objects, const Use& use);
  void wait();  // until the last use is over; sleeps
  // Calls `drop`, which gives the objects up, beside no use.
  void close(const std::function<void()>& drop);

 private:
  std::mutex mutex_;    // while a use is enqueued; guards
  cl::Event released_;  // of the last use
};

}  // namespace clinfer::ocl
