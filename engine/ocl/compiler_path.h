// Tells where clinfer-compiler lies in an installation, wherever that was moved to. Meson writes
// the values.
#pragma once

namespace clinfer::ocl {

extern const char* const kCompilerFromPlugin;   // from the folder of libgstclinfer.so
extern const char* const kCompilerFromProgram;  // from the folder of the program clinfer

}  // namespace clinfer::ocl
