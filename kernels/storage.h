// Defines how kernels store elements: names of types in OpenCL C, bytes of constants, and the
// reasons to refuse tensors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// Returns the name of the storage type in kernels with LOADV and STOREV: "float", "half", "uchar"
// or "e4m3".
std::string storage_name(ElementType type);
// Returns the OpenCL C type of elements that are moved without conversion.
std::string moved_type(ElementType type);
// Returns the OpenCL C type of elements whose values are read; "" for types with which no kernel
// computes.
std::string value_type(ElementType type);

// Converts floats to elements of `type` (f32, f16 or f8e4m3), for packed constants.
std::vector<std::byte> to_bytes(const std::vector<float>& values, ElementType type);

// Returns why the first `data_inputs` inputs and the output cannot be addressed with 32-bit element
// indices, or why their storage types (f32 or f16) do not match; "" if there is no reason.
std::string reject_storage(const OpDesc& desc, size_t data_inputs);
// Refuses as reject_storage() does, for float inputs and an output of floats or, by the tail,
// bytes.
std::string reject_float_data(const OpDesc& desc);
// Refuses as reject_storage() does, for quantised inputs and an output of the same type.
std::string reject_bytes(const OpDesc& desc);
// Refuses as reject_storage() does, for inputs of bytes with weights of small integers, or of
// f8e4m3 with weights of the same, and an output of floats or, by the tail, quantised values.
std::string reject_byte_storage(const OpDesc& desc);

}  // namespace clinfer
