// Runs one operation by one kernel plan on a device, outside any network.
#pragma once

#include <span>
#include <vector>

#include "engine/ocl/device.h"

namespace clinfer {

struct OpRun {
  std::vector<Tensor> outputs;   // row-major; floats as f32
  std::vector<std::byte> stray;  // bytes written outside the outputs; empty when all is well
  double device_ns = 0;          // best time of one execution of all launches, when repeat > 0
};

// Places each input by its desc into a buffer of its own, poisons the outputs and all gaps with NaN
// patterns, launches, reads back. `repeat` > 0 also times that many further executions by events.
// `built`: a program of build_together(); null: each kernel is built as the engine does. Throws
// Error.
OpRun run_op(const ocl::Context& context, const OpDesc& desc, const KernelPlan& plan,
             std::span<const Tensor> inputs, unsigned repeat = 0,
             const cl::Program* built = nullptr);

// Builds the kernels of several plans, none a user's, as one program in this process. PoCL reads a
// megabyte of its own headers for each program, which takes longer than to compile most kernels.
// Throws cl::Error.
cl::Program build_together(const ocl::Context& context, std::vector<KernelPlan> plans);

}  // namespace clinfer
