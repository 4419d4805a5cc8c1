// NVIDIA's driver compiles OpenCL C to PTX for a target without some of the device's instructions
// (sm_90, while wgmma needs sm_90a). Sources contain such instructions as inline PTX comments,
// which survive in the program's PTX; the functions here turn them into instructions. Comments also
// state the size of local memory, because OpenCL C can declare only 48 KiB of the 227 KiB that a
// work-group can have, and the number of work-groups that a compute unit shall hold at once.
#pragma once

#include <CL/opencl.hpp>
#include <string>

namespace clinfer::ocl {

// Returns PTX with its marks applied: "//@" before an instruction is removed, and "//#local BYTES"
// becomes the size of the array of local memory that is declared last before it; "//#groups N"
// limits the registers of the kernel that it stands in to what N work-groups share. Throws
// Error{device_failed} if there is no such array, or if the kernel states no work-group size.
std::string with_marks_in_force(std::string ptx);

// Returns whether a source contains marked instructions, or limits registers.
bool has_marked_ptx(const std::string& source);

// Builds the program with its marked instructions applied. `program` was built for `device` with
// `options`. Throws cl::Error as building does, and Error{device_failed} if the driver gives no
// PTX.
cl::Program build_marked_ptx(const cl::Context& context, const cl::Device& device,
                             const cl::Program& program, const std::string& options);

}  // namespace clinfer::ocl
