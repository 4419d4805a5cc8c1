// The place of clinfer-compiler in an installation, relative to the code that looks for it, so that
// the installation may be moved. Meson writes the values.
#pragma once

namespace clinfer::ocl {

extern const char* const kCompilerFromPlugin;   // relative to the folder of libgstclinfer.so
extern const char* const kCompilerFromProgram;  // relative to the folder of the program clinfer

}  // namespace clinfer::ocl
