// Declares convolutions and matrix products by matrix instructions (convolution_mma.cl): f16 data
// with sums in f32, and bytes with exact sums in 32 bits.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Returns whether the channels of each pixel are whole words that a work-item can read, of halves
// two at once, and fill half of a step. (convolution_rows.cl takes others.)
bool pixels_are_words(const OpDesc& desc, const TileProblem& problem);

// Returns why the device has no matrix instructions of warps, or why the data are neither halves of
// two spatial dimensions nor bytes with exact sums; else "". All kernels with these instructions
// use it.
std::string reject_mma_data(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits);

// Finds the place of a block's channel in the tiles of eight, so that a work-item has `vector`
// adjacent channels of a pixel in the end.
struct MmaPlace {
  int64_t tile, column;
  MmaPlace(int64_t in_block, int64_t vector)
      : tile(in_block / (4 * vector) * (vector / 2) + in_block % vector / 2),
        column(in_block / vector % 4 * 2 + in_block % 2) {}
};
// Returns packed filters as halves, or as bytes.
std::vector<std::byte> mma_factors(const std::vector<float>& packed, bool bytes);
// Adds the sums that bytes start with (halves have none), and the shifts of shifted weights, for
// `padded` output channels of each group. Defines SMALL_SUMS (common/mma_store.cl).
void add_start_sums(const OpDesc& desc, const TileProblem& problem, int64_t padded,
                    KernelSpec& spec, KernelPlan& plan);

std::string reject_mma(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits);
std::vector<TuningPoint> mma_space(const OpDesc& desc, const TileProblem& problem,
                                   const DeviceTraits& traits);
TuningPoint mma_heuristic(const OpDesc& desc, const TileProblem& problem,
                          const DeviceTraits& traits);
std::vector<double> mma_costs(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits);
KernelPlan mma_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                    const TuningPoint& point);

}  // namespace clinfer
