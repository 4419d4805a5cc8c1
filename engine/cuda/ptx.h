// Rewrites the PTX that OpenCL's compiler wrote for CUDA's driver interface.
#pragma once

#include <cstddef>
#include <string>

namespace clinfer::cuda {

// The rewritten program.
struct Ptx {
  std::string text;
  size_t dynamic_shared = 0;  // bytes of shared memory that each launch has to request
  // True if the program begins with griddepcontrol.wait, so that a graph may launch it as soon as
  // the work-groups of what it depends on have ended, and before their writes are visible.
  bool begins_early = false;
};

// OpenCL's launches set registers that CUDA's leave alone: %envreg0 to 5 hold offsets, which become
// 0, %envreg6 to 8 the numbers of work-groups, which CUDA has in %nctaid, and %envreg9 the number
// of dimensions, which is kDimensions. Arrays of shared memory beyond 48 KiB, which OpenCL takes as
// they are declared, become dynamic ones. Where the instruction is there (sm_90), the kernel first
// waits until all launches that it depends on are over and their writes visible. Throws
// Failure{unsupported} that says why where the text is no PTX, or reads a register that is none of
// these.
Ptx ptx_for_cuda(std::string text);

// The number of dimensions of every launch (engine/runtime/network/launch.h).
inline constexpr int kDimensions = 3;

}  // namespace clinfer::cuda
