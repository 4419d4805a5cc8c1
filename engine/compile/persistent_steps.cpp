// Groups steps into persistent kernels.
#include "engine/compile/persistent_steps.h"

#include <algorithm>

#include "engine/plan/cut.h"
#include "engine/plan/work.h"

namespace clinfer {

namespace {

// The share of the time of all kernels that persistent kernels have to save.
constexpr double kWorthHolding = 0.07;
// Microseconds that a launch may lose by being part of a persistent kernel. Without it, one
// persistent kernel would become two.
constexpr double kInterruption = 2.2;

}  // namespace

std::vector<PersistentSteps> make_persistent_steps(const SizedPlan& sized,
                                                   const ocl::Context& context,
                                                   const DeviceTraits& traits, unsigned groups,
                                                   bool forced) {
  // On a CPU a part takes as long as a launch of its own, so that saving launches always pays.
  const bool single = traits.grid_barrier == GridBarrier::single;
  forced = forced || single;
  std::vector<PersistentSteps> all;
  const std::vector<Step>& plan = sized.plan.steps;
  std::vector<ocl::LaunchTime> times(plan.size());
  std::vector<bool> fits(plan.size());
  double all_us = 0, saved_us = 0;
  for (size_t s = 0; s < plan.size(); ++s) {
    if (plan[s].on_host || plan[s].loop || !plan[s].cuts.empty()) continue;
    const std::vector<KernelSpec>& launches = plan[s].kernels.launches;
    bool accepted = true;
    for (const KernelSpec& launch : launches) {
      const ocl::LaunchTime time = ocl::launch_time(
          launch, multiply_adds(plan[s].desc) / static_cast<double>(launches.size()),
          context.device.info.compute_units);
      times[s].alone += time.alone;
      times[s].as_part += time.as_part;
      accepted = accepted && ocl::reject_persistent(launch, traits).empty();
    }
    all_us += times[s].alone;
    fits[s] = accepted && (forced || times[s].as_part < times[s].alone + kInterruption);
  }
  for (size_t first = 0; first < plan.size(); ++first) {
    std::vector<const KernelSpec*> launches;
    std::vector<size_t> step_of;
    size_t end = first;
    double seconds = 0;
    for (; end < plan.size() && fits[end]; ++end) {
      // Limits a launch's time, because cancelling waits for a launch, and few cores may need long
      // for an inference.
      if (single) {
        seconds += assumed_seconds(plan[end].desc, traits) * traits.compute_units / groups;
        if (end > first && seconds > kSecondsOfLaunch) break;
      }
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
    for (size_t s = steps.first; s < steps.end; ++s) saved_us += times[s].alone - times[s].as_part;
    first = steps.end - 1;
    all.push_back(std::move(steps));
  }
  if (!forced && saved_us < kWorthHolding * all_us) return {};
  return all;
}

}  // namespace clinfer
