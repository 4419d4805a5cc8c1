// Leave to use AMX, whose registers Linux saves only for processes that ask for it.
#pragma once

#include <string>

namespace clinfer::ocl {

// Asks for it, once; it then holds for all threads of the process. Returns why the process may not
// use the tiles of bytes, or "". Thread-safe.
const std::string& amx_problem();

}  // namespace clinfer::ocl
