// Starts threads that compile.
#pragma once

#include <functional>

namespace clinfer::ocl {

// Runs `work` on a thread of its own, for which the end of the process waits, so that what it uses
// is not torn down before. Returns false if no thread can be started, or the process is ending.
// Throws std::bad_alloc.
bool start_compiling(std::function<void()> work);

}  // namespace clinfer::ocl
