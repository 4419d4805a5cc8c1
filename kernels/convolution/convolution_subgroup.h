// Convolutions and matrix products by sub-groups that read blocks of memory and broadcast values
// (convolution_subgroup.cl): Intel's GPUs.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/convolution/convolution_tile.h"

namespace clinfer {

// The input elements that one output channel multiplies, in runs of adjacent memory. An element is
// what a lane of a sub-group has of a block of the input.
struct Runs {
  bool merged = false;  // a run is a row of the kernel, else the channels of a pixel
  int64_t count = 0, length = 0;
  int lanes = 16;
  int step = 4;  // the elements at the end of a run that do not fill a block are padded to this
  int64_t rest() const { return (length % lanes + step - 1) / step * step; }
  int64_t padded() const { return length / lanes * lanes + rest(); }
};
// The runs with fewer elements of padding; `unit`: input channels in an element.
Runs subgroup_runs(const TileProblem& problem, int64_t unit, int lanes, int step);
// The ways in which sub-groups multiply: by values that are broadcast to all lanes, by matrix
// instructions, or by shuffles that stand in for these.
enum class SubgroupProducts { broadcast, matrix, stand_in };
// The parts of a launch of convolution_subgroup.cl, besides the convolution.
struct SubgroupKernel {
  TileShape tile;
  int reads;
  Runs runs;
  std::string_view weight;  // the type of the packed weights
  std::function<std::vector<std::byte>()> pack;
  SubgroupProducts products;
  Blocks2d blocks_2d = Blocks2d::none;
  bool gathered = false;  // a message reads parts of all pixels
};
KernelPlan subgroup_launch(const OpDesc& desc, const TileProblem& problem,
                           const DeviceTraits& traits, const SubgroupKernel& kernel);
// The time of a kernel by its causes, in cycles of an execution unit, from the instructions that
// Intel's compiler makes of it (tests/kernels/intel_isa.py) and published rates, not from
// measurements. All units compute sub-groups at once.
struct SubgroupCycles {
  double products = 0;  // the multiply-adds alone
  double issue = 0;     // all instructions of the loops, or the matrix unit where that takes longer
  double sends = 0;     // of these, messages to memory with their headers and addresses
  double cache = 0;     // bytes from the cache to the units
  double own = 0;       // positions, tails and stores
  double wait = 0;      // for messages, where other threads do not hide that
  double total() const { return std::max(issue, cache) + own + wait; }
};
SubgroupCycles subgroup_cycles(const OpDesc& desc, const TileProblem& problem,
                               const DeviceTraits& traits, const TuningPoint& point);

// True if the input's blocks can be read at once: halves only at multiples of four bytes.
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
