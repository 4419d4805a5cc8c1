// NumPy's .npy files as tensors. Files are untrusted input.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kernels/base/tensor.h"

namespace clinfer {

// Read versions 1 to 3, types f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1, little-endian; Fortran order
// becomes C order. Throw Error{not_found} if there is no such file, and Error{bad_argument} for
// other content.
Tensor read_npy(const std::string& path);
Tensor parse_npy(std::span<const std::byte> file, const std::string& where);

// Writes version 1, in C order. Throws Error{io}.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace clinfer
