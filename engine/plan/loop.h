// A loop on the device: the launches of its body, repeated with other addresses for what differs
// between iterations.
#pragma once

#include <optional>
#include <vector>

#include "engine/plan/plan.h"

namespace clinfer {

struct Loop {
  // An argument whose place differs between iterations: a part of a sliced tensor, or a state,
  // which one iteration reads where the one before wrote it.
  struct Moving {
    // Indices into KernelPlan::launches and into the launch's arguments.
    size_t launch = 0, argument = 0;
    Argument usual;
    int64_t advance = 0;                  // bytes from one iteration to the next
    int64_t odd = 0;                      // bytes added in odd iterations
    std::optional<Argument> first, last;  // replace `usual` in the first and the last iteration
  };
  int64_t count = 0;
  int64_t first_part = 1;  // iterations launched before the first look at the clock
  std::vector<Moving> moving;
  // The planned body. The launches of its steps, in order, are the loop's launches.
  std::shared_ptr<const Plan> body = {};

  Argument at(const Moving& moving, int64_t iteration) const;
};

// Plans the body of a DeviceLoop. The step's launches are those of the first iteration. Throws
// Error{unsupported} if the device cannot run it.
void plan_loop(Step& step, const DeviceTraits& traits, const KernelChooser& choose);

}  // namespace clinfer
