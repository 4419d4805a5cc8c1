// NumPy's .npy files as tensors. Files are untrusted input.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kernels/base/tensor.h"

namespace clinfer {

// Versions 1 to 3, types f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1, little-endian; Fortran order is
// turned into C order. Throws Error{not_found} where there is no such file, Error{bad_argument}
// where it is not such a file.
Tensor read_npy(const std::string& path);
Tensor parse_npy(std::span<const std::byte> file, const std::string& where);

// Version 1, C order. Throws Error{io}.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace clinfer
