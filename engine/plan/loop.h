// A loop on the device: its body's launches, repeated with other places for what differs between
// iterations.
#pragma once

#include <optional>
#include <vector>

#include "engine/plan/plan.h"

namespace clinfer {

struct Loop {
  // An argument that lies elsewhere in another iteration: a part of a sliced tensor, or a state, which
  // one iteration reads where the one before wrote it.
  struct Moving {
    size_t launch = 0, argument = 0;  // in KernelPlan::launches, and in its arguments
    Argument usual;
    int64_t advance = 0;                  // bytes from one iteration to the next
    int64_t odd = 0;                      // bytes that are added in odd iterations
    std::optional<Argument> first, last;  // in the first or last iteration, instead
  };
  int64_t count = 0;
  int64_t first_part = 1;  // iterations that are launched before the first look at the clock
  std::vector<Moving> moving;
  // The body as it was planned. The launches of its steps follow each other in the loop's.
  std::shared_ptr<const Plan> body = {};

  Argument at(const Moving& moving, int64_t iteration) const;
};

// Plans the body of a DeviceLoop: the step's launches are those of the first iteration. Throws
// Error{unsupported} where the device cannot run it.
void plan_loop(Step& step, const DeviceTraits& traits, const KernelChooser& choose);

}  // namespace clinfer
