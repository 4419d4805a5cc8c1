// Threads that compile, and the end of the process.
#pragma once

#include <functional>

namespace clinfer::ocl {

// Runs `work` on a thread of its own, which the end of the process waits for: what it uses must not
// be torn down before. False where no thread can be had. Throws std::bad_alloc.
bool start_compiling(std::function<void()> work);

// Called whenever a driver has compiled something in this process. Exit handlers run in the
// opposite order of their registration. Handlers that drivers registered meanwhile (LLVM does at
// the first use of many of its parts) must not run before the threads have ended.
void wait_for_compilers_at_exit();

// The process ends: nothing more is to be begun.
bool is_leaving();

}  // namespace clinfer::ocl
