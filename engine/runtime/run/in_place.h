// Lets kernels of a plan read inputs, and write outputs, where these lie in memory of the
// application, instead of in the memory of the request.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/run/queue_run.h"

namespace clinfer {

// Belongs to a request, whose kernels it binds.
class InPlace {
 public:
  using Tensor = std::pair<const Node*, int>;  // a storage root
  using Wanted = std::map<Tensor, BoundBuffer>;

  // Returns why kernels do not use the tensor in this memory; "" if they do. `given`: the tensor as
  // the application has it. `reads`: an input, else an output.
  std::string why_not(const SizedPlan& sized, const Edge& edge, const TensorDesc& given,
                      const BoundBuffer& memory, bool reads);
  // Makes the kernels of that plan use the wanted memory for these tensors, and that of the request
  // for all others. Throws cl::Error.
  void bind(QueueRun& run, const SizedPlan& sized, RequestMemory& memory, const Wanted& wanted);

 private:
  // An argument of a launch that lies in a tensor.
  struct Use {
    size_t step, launch, argument;
    int64_t offset;  // from the tensor's first byte
  };
  struct Uses {
    std::string refusal;  // why none of them can be bound elsewhere
    std::vector<Use> all;
  };
  const Uses& uses_of(const SizedPlan& sized, const Edge& root);

  std::map<std::pair<const SizedPlan*, Tensor>, Uses> uses_;
};

// Returns whether two pieces of memory of the application may have bytes in common.
bool overlap(const BoundBuffer& a, const BoundBuffer& b);

}  // namespace clinfer
