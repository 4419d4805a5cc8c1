// NVIDIA's driver compiles OpenCL C to PTX for a target that lacks some of the device's
// instructions (sm_90, where wgmma needs sm_90a). Sources hold such instructions as inline PTX
// comments, which survive in the PTX of the program; here they become instructions. So does the size of
// local memory, of which OpenCL C can declare 48 KiB and a work-group can have 227 KiB.
#pragma once

#include <CL/opencl.hpp>
#include <string>

namespace clinfer::ocl {

// PTX with its marks in force: "//@" before an instruction is taken away, and "//#local BYTES" is the size of
// the array of local memory that is declared last before it. Throws Error{device_failed} where there is none.
std::string with_marks_in_force(std::string ptx);

// Returns whether a source holds marked instructions ("//@").
bool has_marked_ptx(const std::string& source);

// The program with its marked instructions in force. `program` is built for `device` with
// `options`. Throws cl::Error as building does, Error{device_failed} when the driver gives no PTX.
cl::Program build_marked_ptx(const cl::Context& context, const cl::Device& device,
                             const cl::Program& program, const std::string& options);

}  // namespace clinfer::ocl
