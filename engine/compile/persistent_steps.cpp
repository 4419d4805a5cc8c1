// Groups steps into persistent kernels.
#include "engine/compile/persistent_steps.h"

#include <algorithm>

#include "engine/plan/cut.h"
#include "engine/plan/work.h"

namespace clinfer {

std::vector<PersistentSteps> make_persistent_steps(const SizedPlan& sized,
                                                   const ocl::Context& context,
                                                   const DeviceTraits& traits, unsigned groups) {
  std::vector<PersistentSteps> all;
  const std::vector<Step>& plan = sized.plan.steps;
  const auto fits = [&](const Step& step) {
    return !step.on_host && !step.loop && step.cuts.empty() &&
           std::ranges::all_of(step.kernels.launches, [&](const KernelSpec& launch) {
             return ocl::reject_persistent(launch, traits).empty();
           });
  };
  for (size_t first = 0; first < plan.size(); ++first) {
    std::vector<const KernelSpec*> launches;
    std::vector<size_t> step_of;
    size_t end = first;
    double seconds = 0;
    for (; end < plan.size() && fits(plan[end]); ++end) {
      // Limits a launch's time, because cancelling waits for a launch, and few cores may need long
      // for an inference.
      seconds += assumed_seconds(plan[end].desc, traits) * traits.compute_units / groups;
      if (end > first && seconds > kSecondsOfLaunch) break;
      for (const KernelSpec& launch : plan[end].kernels.launches) {
        launches.push_back(&launch);
        step_of.push_back(end);
      }
    }
    const auto place = [&](size_t launch, const Argument& argument) {
      return sized.place_of(step_of[launch], argument);
    };
    PersistentSteps steps{first, end, {}, {}};
    size_t count = 0;
    while (launches.size() > 1) {
      steps.kernel = ocl::make_persistent(launches, place, traits, count);
      if (count == launches.size()) break;
      steps.end = step_of[count];  // a step is never split between two kernels
      launches.resize(static_cast<size_t>(std::find(step_of.begin(), step_of.end(), steps.end) -
                                          step_of.begin()));
    }
    if (launches.size() < 2) continue;
    steps.list = cl::Buffer(context.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            steps.kernel.list.size() * sizeof(int32_t), steps.kernel.list.data());
    first = steps.end - 1;
    all.push_back(std::move(steps));
  }
  return all;
}

}  // namespace clinfer
