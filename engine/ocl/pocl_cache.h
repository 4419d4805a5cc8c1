// PoCL finds no device where it can write no cache: with a HOME that cannot be written, as services
// and containers have. Such a process gets another folder.
#pragma once

#include <string>

namespace clinfer::ocl {

// Sets POCL_CACHE_DIR where the folder that PoCL would take cannot be written, or can be written by
// others, whose code would run then: to a folder in `preferred` (the engine's cache; "": none),
// else to one of this user alone among the system's temporary ones. To be called before PoCL is
// asked for devices. Returns what was done and why in one line, "" where nothing was to be done.
std::string provide_pocl_cache(const std::string& preferred);

}  // namespace clinfer::ocl
