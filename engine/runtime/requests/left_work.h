// Work that a device had not finished when its request stopped waiting for it.
#pragma once

#include <chrono>
#include <memory>

#include "engine/runtime/run/completion.h"

namespace clinfer {

// Keeps `used` alive until the work is over, or for ever. Thread-safe.
void leave_in_memory(std::shared_ptr<Completion> until, std::shared_ptr<void> used);

// Waits at most for `timeout`. Returns whether all such work is over. If not, end the process by
// _exit(), because drivers may fail in an ordinary exit while the device works.
bool left_work_is_over(std::chrono::milliseconds timeout);

}  // namespace clinfer
