// Translates places in build logs of programs to those that the user knows.
#pragma once

#include <string>

namespace clinfer::ocl {

// Returns the build log `log` of `source` with the files and lines that `source` states in #line
// directives. NVIDIA's compiler ignores these and counts the lines of the whole text:
// "<kernel>:35:8:". Places before the first directive, and logs of other compilers, are not
// changed.
std::string place_in_files(const std::string& log, const std::string& source);

}  // namespace clinfer::ocl
