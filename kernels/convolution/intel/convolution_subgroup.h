// Convolutions and matrix products for Intel's GPUs, by sub-groups that read blocks of memory and
// broadcast values (convolution_subgroup.cl).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// The input elements that one output channel multiplies, in runs of adjacent memory. An element is
// the part of an input block that one lane of a sub-group holds.
struct Runs {
  bool merged = false;  // true: a run is a row of the kernel; false: the channels of a pixel
  int64_t count = 0, length = 0;
  int lanes = 16;
  // The elements at the end of a run that do not fill a block are padded to a multiple of this.
  int step = 4;
  int64_t rest() const { return (length % lanes + step - 1) / step * step; }
  int64_t padded() const { return length / lanes * lanes + rest(); }
};
// Returns the runs with fewer elements of padding. `unit`: number of input channels in an element.
Runs subgroup_runs(const TileProblem& problem, int64_t unit, int lanes, int step);
// The way in which sub-groups multiply: by values that are broadcast to all lanes, by matrix
// instructions, or by shuffles that stand in for these.
enum class SubgroupProducts { broadcast, matrix, stand_in };
// The parts of a launch of convolution_subgroup.cl that do not follow from the convolution.
struct SubgroupKernel {
  TileShape tile;
  int reads;
  Runs runs;
  std::string_view weight;  // type of the packed weights
  std::function<std::vector<std::byte>()> pack;
  SubgroupProducts products;
  Blocks2d blocks_2d = Blocks2d::none;
  bool gathered = false;  // true if a message reads parts of all pixels
};
KernelPlan subgroup_launch(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits, const SubgroupKernel& kernel);
// The estimated time of a kernel by its causes, in cycles of an execution unit. It follows from the
// instructions that Intel's compiler makes (tests/kernels/intel_isa.py) and published rates, not
// from measurements. All units compute sub-groups at the same time.
struct SubgroupCycles {
  double products = 0;  // the multiply-adds alone
  double issue = 0;     // all instructions of the loops, or the matrix unit if that takes longer
  double sends = 0;  // those of them that are messages to memory, with their headers and addresses
  double cache = 0;  // transfers from the cache to the units
  double own = 0;    // positions, tails and stores
  double wait = 0;   // waits for messages that other threads do not hide
  double total() const { return std::max(issue, cache) + own + wait; }
};
SubgroupCycles subgroup_cycles(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits, const TuningPoint& point);

// Returns whether the input's blocks can be read at once: halves only at multiples of four bytes.
bool reads_blocks(const OpDesc& desc, const TileProblem& problem);

std::string reject_subgroup(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits);
std::vector<TuningPoint> subgroup_space(const OpDesc& desc, const TileProblem& problem,
                                        const DeviceTraits& traits);
TuningPoint subgroup_heuristic(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits);
std::vector<double> subgroup_costs(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
KernelPlan subgroup_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                         const TuningPoint& point);

}  // namespace clinfer
