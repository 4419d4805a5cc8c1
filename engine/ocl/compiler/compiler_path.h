// The place of clinfer-compiler in an installation, relative to the library that looks for it, so
// that the installation may be moved. Meson writes the value.
#pragma once

namespace clinfer::ocl {

extern const char* const kCompilerFromLibrary;  // relative to the folder of libclinfer.so

}  // namespace clinfer::ocl
