// Acquires and releases memory of other APIs.
#include "engine/ocl/acquire_release.h"

namespace clinfer::ocl {

void AcquireRelease::with_acquired(const AcquireReleaseFunctions& functions,
                                   const cl::CommandQueue& queue, std::span<const cl_mem> objects,
                                   const Use& use) {
  const std::lock_guard lock(mutex_);
  if (functions.acquire == nullptr) {
    released_ = use(released_);
    queue.flush();
    return;
  }
  const auto hand_over = [&](AcquireReleaseFunctions::Enqueue function, const char* name,
                             const cl::Event& after) {
    const cl_event wait = after();
    cl::Event done;
    const cl_int status =
        function(queue(), static_cast<cl_uint>(objects.size()), objects.data(),
                 wait != nullptr ? 1 : 0, wait != nullptr ? &wait : nullptr, &done());
    if (status != CL_SUCCESS) throw cl::Error(status, name);
    return done;
  };
  const cl::Event acquired = hand_over(functions.acquire, functions.acquire_name, released_);
  cl::Event used;
  try {
    used = use(acquired);
  } catch (...) {
    released_ = hand_over(functions.release, functions.release_name, acquired);
    queue.flush();
    throw;
  }
  released_ = hand_over(functions.release, functions.release_name, used);
  queue.flush();  // commands on another queue may wait for the release
}

void AcquireRelease::wait() {
  cl::Event released;
  {
    const std::lock_guard lock(mutex_);
    released = released_;
  }
  try {
    if (released() != nullptr) released.wait();
  } catch (const cl::Error&) {
    // The device failed, so nothing reads the memory any more.
  }
}

void AcquireRelease::close(const std::function<void()>& drop) {
  const std::lock_guard lock(mutex_);
  drop();
  released_ = {};
}

}  // namespace clinfer::ocl
