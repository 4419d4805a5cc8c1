// Acquires external memory before each use by OpenCL, and releases it afterwards.
#pragma once

#include <CL/opencl.hpp>
#include <functional>
#include <mutex>
#include <span>

namespace clinfer::ocl {

// Returns a function of an extension; null if the platform has none of this name.
template <typename Function>
Function extension_function(const cl::Platform& platform, const char* name) {
  return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
}

// The functions of an extension that acquire and release, and their names for messages. Null for
// memory that needs neither.
struct AcquireReleaseFunctions {
  using Enqueue = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                       const cl_event*, cl_event*);
  Enqueue acquire = nullptr, release = nullptr;
  const char* acquire_name = "";
  const char* release_name = "";
};

// Orders the uses of one piece of memory. Thread-safe.
class AcquireRelease {
 public:
  // Enqueues a use of the memory after the event `acquired`, if there is one, and returns the event
  // of its end.
  using Use = std::function<cl::Event(const cl::Event& acquired)>;

  // Acquires the objects on `queue`, calls `use` and releases them, ordered by events. The device
  // waits while another queue uses them. Throws cl::Error.
  void with_acquired(const AcquireReleaseFunctions& functions, const cl::CommandQueue& queue,
                     std::span<const cl_mem> objects, const Use& use);
  void wait();  // sleeps until the last use is over
  // Calls `drop`, which releases the objects, when there is no use.
  void close(const std::function<void()>& drop);

 private:
  std::mutex mutex_;    // held while a use is enqueued; guards the member below
  cl::Event released_;  // of the last use
};

}  // namespace clinfer::ocl
