// PoCL finds no device where it can write no cache: with a HOME that cannot be written, as services
// and containers have. It ends the process where code in its cache cannot be run (noexec), and compiles nothing
// where the disk is full. Such a process gets another folder.
#pragma once

#include <string>

#include "kernels/base/error.h"

namespace clinfer::ocl {

struct PoclCache {
  std::string note;    // what was done and why in one line, "" where nothing was to be done
  bool usable = true;  // whether PoCL has a folder
};

// Sets POCL_CACHE_DIR where the folder that PoCL would take cannot be written, can be changed by
// others, whose code would run then, holds no code that can be run or has no room: to a folder in `preferred` (the engine's
// cache; "": none), else to one of this user alone among the system's temporary ones, of a name that cannot be
// guessed if need be. To be called before PoCL is asked for devices.
PoclCache provide_pocl_cache(const std::string& preferred);

// That the disk of PoCL's folder is full by now, in one line; "" where it is not.
std::string full_pocl_cache();

// The error of a kernel that PoCL cannot compile for that reason.
class PoclCacheFull : public Error {
 public:
  using Error::Error;
};

}  // namespace clinfer::ocl
