// Work that a device did not finish when nobody wanted to wait for it any more.
#pragma once

#include <chrono>
#include <memory>

#include "engine/runtime/completion.h"

namespace clinfer {

// Keeps `used` until then, or until the process is over. Thread-safe.
void leave_in_memory(std::shared_ptr<Completion> until, std::shared_ptr<void> used);

// Returns whether all of it is over, by then at the latest. A process that ends while work is left
// on the device had better do so by _exit(): drivers may not expect it.
bool left_work_is_over(std::chrono::milliseconds timeout);

}  // namespace clinfer
