// Work that a device did not finish when nobody wanted to wait for it any more.
#pragma once

#include <CL/opencl.hpp>
#include <chrono>
#include <memory>

namespace clinfer {

// Keeps `used` until the event is over, or the process is. Thread-safe.
void leave_in_memory(const cl::Event& until, std::shared_ptr<void> used);

// Whether all of it is over, by then at the latest. A process that ends while work is left on the
// device had better do so by _exit(): drivers may not expect it.
bool left_work_is_over(std::chrono::milliseconds timeout);

}  // namespace clinfer
