// Asks Linux for permission to use AMX, whose registers it saves only for processes that have
// asked.
#pragma once

#include <string>

namespace clinfer::ocl {

// Asks once; the permission then holds for all threads of the process. Returns why the process may
// not use AMX's tiles of bytes, or "". Thread-safe.
const std::string& amx_problem();

}  // namespace clinfer::ocl
