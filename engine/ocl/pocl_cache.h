// Gives PoCL a usable cache folder. PoCL finds no device if it cannot write its cache, as with the
// HOME of services and containers; it ends the process if code in its cache cannot be executed
// (noexec) or no linker can be started, and compiles nothing if the disk is full.
#pragma once

#include <string>

#include "kernels/base/error.h"

namespace clinfer::ocl {

struct PoclCache {
  std::string note;    // what was done and why, in one line; "" for nothing
  bool usable = true;  // true if PoCL has a folder
};

// Sets POCL_CACHE_DIR if the folder that PoCL would take cannot be written, can be changed by
// others (whose code would then run), must not contain executable code, or has no room. The new
// folder is in `preferred` (the engine's cache; "": none), or else a folder of this user alone
// among the system's temporary ones, with an unpredictable name if need be. To be called before
// PoCL is asked for devices.
PoclCache provide_pocl_cache(const std::string& preferred);

// Returns a line that tells if the disk of PoCL's folder has become full; else "".
std::string full_pocl_cache();

// Reports that PoCL cannot compile a kernel because its folder is full.
class PoclCacheFull : public Error {
 public:
  using Error::Error;
};

}  // namespace clinfer::ocl
