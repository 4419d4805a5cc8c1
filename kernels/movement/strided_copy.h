// The device kernel for operations that only move elements: a strided copy of up to eight
// dimensions.
#pragma once

#include <array>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/kernel.h"
#include "kernels/storage.h"

namespace clinfer {

// One loop of a copy, in elements. `along`: its steps along the bounded axes (see StridedCopy).
struct CopyDim {
  int64_t size = 1, from = 0, to = 0;
  std::array<int64_t, 4> along{};
};

// Copies input 0 of an OpDesc to its output 0. An element is copied if the position along each
// bounded axis, start plus the sum of index * along, is in 0..limit-1; otherwise the output is set
// to 0 (fill) or left unchanged.
struct StridedCopy {
  std::vector<CopyDim> dims;  // in any order
  int64_t from = 0, to = 0;   // at index 0, relative to the tensors' first elements
  size_t axes = 0;            // number of bounded axes
  std::array<int64_t, 4> start{}, limit{};
  bool fill = false;
};

inline constexpr size_t kMostCopyDims = 8;

// Sorts the loops by their steps through the output, innermost last, and merges those that are
// contiguous on both sides.
std::vector<CopyDim> merged(std::vector<CopyDim> dims);

// Sets the members `size`, `from` and `to` of a kernel's arguments.
template <typename Args>
void set_loops(Args& args, const std::vector<CopyDim>& dims) {
  set_each(args.size, dims, &CopyDim::size);
  set_each(args.from, dims, &CopyDim::from);
  set_each(args.to, dims, &CopyDim::to);
}

// Performs on the host a copy made from row-major layouts. Elements that it does not write keep the
// values of allocate().
void copy_on_host(const StridedCopy& copy, const Tensor& in, Tensor& out);

// Implement the family below.
std::string reject_copy(const OpDesc& desc, const StridedCopy& copy);
std::vector<TuningPoint> copy_space(const OpDesc& desc, const DeviceTraits& traits);
TuningPoint copy_heuristic(const OpDesc& desc, const DeviceTraits& traits);
KernelPlan plan_copy(const OpDesc& desc, const StridedCopy& copy, const DeviceTraits& traits,
                     const TuningPoint& point);

// Choose how many elements one work-item copies, and the work-items of a group; other kernels that
// move elements use them, too.
std::vector<TuningPoint> run_space();
TuningPoint run_heuristic(const OpDesc& desc, const DeviceTraits& traits);
size_t run_group(const DeviceTraits& traits);
// Returns the number of work-items for runs of `run` elements, rounded up to whole groups.
size_t run_items(const std::vector<CopyDim>& dims, int64_t run, size_t group);

// Makes the family of an operation that `describe` turns into a copy. `describe` may assume shapes
// that infer_shapes accepted.
template <StridedCopy (*describe)(const OpDesc&)>
KernelFamily copy_family(const char* name) {
  return {name,
          1,
          [](const OpDesc& desc, const DeviceTraits&) { return reject_copy(desc, describe(desc)); },
          copy_space,
          copy_heuristic,
          [](const OpDesc& desc, const DeviceTraits& traits, const TuningPoint& point) {
            return plan_copy(desc, describe(desc), traits, point);
          }};
}

}  // namespace clinfer
