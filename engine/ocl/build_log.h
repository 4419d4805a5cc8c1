// Build logs of programs, with the places that the user knows.
#pragma once

#include <string>

namespace clinfer::ocl {

// The build log `log` of `source` with the files and lines that the #line directives of `source`
// give. NVIDIA's compiler passes over them and counts lines of the whole text: "<kernel>:35:8:".
// Places before the first directive, and logs of other compilers, stay as they are.
std::string place_in_files(const std::string& log, const std::string& source);

}  // namespace clinfer::ocl
