// Threads that compile.
#pragma once

#include <functional>

namespace clinfer::ocl {

// Runs `work` on a thread of its own, which the end of the process waits for: what it uses must not
// be torn down before. False where no thread can be had, or the process ends. Throws std::bad_alloc.
bool start_compiling(std::function<void()> work);

}  // namespace clinfer::ocl
