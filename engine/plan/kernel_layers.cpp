// Lists the layers that kernels compute.
#include "engine/plan/kernel_layers.h"

#include "engine/plan/loop.h"

namespace clinfer {

std::vector<KernelLayer> kernel_layers(const Plan& plan) {
  std::vector<KernelLayer> layers;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.loop)
      for (const Step& inside : step.loop->body->steps)
        layers.push_back(
            {&inside, step.desc.name + "/" + inside.desc.name, s, true, step.loop->count});
    else if (!step.on_host)
      layers.push_back({&step, step.desc.name, s});
  }
  return layers;
}

}  // namespace clinfer
