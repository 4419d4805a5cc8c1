// Waits for events of OpenCL and CUDA.
#include "engine/runtime/run/completion.h"

#include "kernels/base/error.h"

namespace clinfer {

bool QueueCompletion::is_over() {
  return event_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
}

void QueueCompletion::wait() {
  try {
    event_.wait();
  } catch (const cl::Error& error) {
    // Reads the event's own status, which tells how it failed.
    const cl_int status = event_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
    if (error.err() != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST || status >= 0) throw;
    throw cl::Error(status, error.what());
  }
}

void QueueCompletion::call_when_over(std::function<void()> function) {
  auto called = std::make_unique<std::function<void()>>(std::move(function));
  cl::Event event = event_;
  event.setCallback(
      CL_COMPLETE,
      [](cl_event, cl_int, void* data) {
        const std::unique_ptr<std::function<void()>> owner(
            static_cast<std::function<void()>*>(data));
        (*owner)();
      },
      called.get());
  called.release();  // The callback owns it now.
}

bool StreamCompletion::is_over() {
  try {
    return event_.is_over();
  } catch (const Error&) {
    // Waits, because the device may still use memory that would be freed next.
    try {
      event_.wait();
    } catch (const Error&) {  // wait() reports how the work failed
    }
    return true;
  }
}

void StreamCompletion::wait() { event_.wait(); }

void StreamCompletion::call_when_over(std::function<void()> function) {
  if (calling_ == nullptr) calling_ = std::make_unique<cuda::Stream>(device_);
  calling_->wait_for(event_);
  calling_->call_when_over(std::move(function));
}

}  // namespace clinfer
