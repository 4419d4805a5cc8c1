// Where clinfer-compiler lies in an installation, wherever that was moved to. Made by meson.
#pragma once

namespace clinfer::ocl {

extern const char* const kCompilerFromPlugin;   // from the folder of libgstclinfer.so
extern const char* const kCompilerFromProgram;  // from the folder of the program clinfer

}  // namespace clinfer::ocl
