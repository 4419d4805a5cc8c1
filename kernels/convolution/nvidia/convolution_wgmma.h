// Declares convolutions and matrix products by warpgroup matrix instructions (convolution_wgmma.cl,
// convolution_wgmma_taps.cl): f16 data with sums in f32, bytes with exact sums in 32 bits, and
// f8e4m3 data and weights with sums in f32.
#pragma once

#include <string>
#include <vector>

#include "kernels/convolution/tiles/convolution_tile.h"

namespace clinfer {

// Returns why these instructions do not multiply the data and weights; "" if they do.
std::string reject_wgmma_data(const OpDesc& desc, const TileProblem& problem,
                              const DeviceTraits& traits);
std::string reject_wgmma(const OpDesc& desc, const TileProblem& problem,
                         const DeviceTraits& traits);
std::vector<TuningPoint> wgmma_space(const OpDesc& desc, const TileProblem& problem,
                                     const DeviceTraits& traits);
TuningPoint wgmma_heuristic(const OpDesc& desc, const TileProblem& problem,
                            const DeviceTraits& traits);
std::vector<double> wgmma_costs(const OpDesc& desc, const TileProblem& problem,
                                const DeviceTraits& traits);
KernelPlan wgmma_plan(const OpDesc& desc, const TileProblem& problem, const DeviceTraits& traits,
                      const TuningPoint& point);

// Return parts of inline PTX: "+f"((s)[0]), ..., or "=&f"((s)[0]), ... where sums are only written; and the
// instruction that multiplies 64 rows of these data by columns.
std::string sums_as_operands(int sums, bool bytes, bool written_only = false);
std::string wgmma_name(int columns, ElementType data);
// Returns the statement that multiplies a step's tiles as marked PTX: an instruction for each 32 bytes of a
// row, and the wait for them, or with `late` for those of the step before.
std::string wgmma_step(int columns, int chunks, ElementType data, bool late);
// Returns the statement that waits for all products.
std::string wgmma_finish(int columns, ElementType data);

// Returns how many adjacent channels of a pixel a work-item stores at once, of blocks of `columns`: bytes by 16
// where channels and memory are whole vectors of so many, which halves the accesses, else by 8.
int wgmma_vector(const OpDesc& desc, const TileProblem& problem, const TailAxes& axes, int columns);

// Returns the filters in the order in which work-groups copy them (convolution_wgmma.cl), followed by one
// chunk of zero points. `vector`: channels that a work-item stores at once.
std::vector<std::byte> wgmma_weights(const std::vector<float>& plain, const ConvShape& s,
                                     int columns, int vector, int chunks, ElementType data,
                                     float zero);

}  // namespace clinfer
