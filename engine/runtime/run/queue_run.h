// Runs inferences by OpenCL, launch by launch.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/surfaces.h"
#include "engine/runtime/network/launch.h"
#include "engine/runtime/run/plan_run.h"

namespace clinfer {

// Events of one inference's commands, which are recorded if times are wanted.
struct CommandEvents {
  // launches[step][launch]: one event for each part and iteration
  std::vector<std::vector<std::vector<cl::Event>>> launches;
  std::vector<cl::Event> uploads, preprocessing, downloads;
};

// Runs persistent kernels, single launches, parts of launches that are cut, and iterations of
// loops.
class QueueRun final : public PlanRun {
 public:
  QueueRun(const DeviceNetwork& network, DeviceStream& stream)
      : network_(network), stream_(stream) {}
  bool prepare(const SizedPlan& sized, RequestMemory& memory) override;
  void begin(const SizedPlan& sized, RequestMemory& memory) override;
  std::shared_ptr<ocl::HostMemory> make_host_memory(size_t bytes) const override;
  void copy_frame(DeviceFrame& input) override;
  void launch_frame(DeviceFrame& input) override;
  void write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) override;
  size_t run(size_t first) override;
  bool is_partway() const override { return next_group_ != 0 || next_iteration_ != 0; }
  void read(const ocl::ArgumentPlace& from, void* to, size_t bytes) override;
  std::shared_ptr<Completion> end() override;
  std::shared_ptr<Completion> end_of_all() override;
  void finish() override;

  // Return the memory of a place for the current or last inference.
  BoundBuffer bound(const ocl::ArgumentPlace& place) const;
  BoundBuffer bound(const ocl::ArgumentPlace& place, RequestMemory& memory) const;
  // Sets the arguments of a frame's kernels. The planes may be those of a surface or of imported
  // memory.
  void bind_frame(DeviceFrame& input, const ocl::Surface* surface, const PlaneMemories* memories,
                  RequestMemory& memory);
  // Maps results where the device shares the host's memory. The pointer is valid until the next
  // inference in this memory.
  const std::byte* map(size_t offset, size_t bytes);
  // If set, the run waits for each step and then calls this, so that a caller can time the step or
  // read its results.
  std::function<void(size_t step)> visit;

  CommandEvents events;
  // Returns a place for the event of a command if times are wanted; else null.
  cl::Event* timed(std::vector<cl::Event>& of) const {
    return network_.options.perf_count ? &of.emplace_back() : nullptr;
  }

 private:
  // A read that takes long enough to use another queue.
  struct LongRead {
    size_t offset, bytes;
    void* to;
  };

  // Run the launches of a step. Return false if parts of it are left to run.
  bool run_step(std::vector<cl::Kernel>& kernels);
  bool run_launches(std::vector<cl::Kernel>& kernels);
  bool run_iterations(std::vector<cl::Kernel>& kernels);
  void bind_iteration(std::vector<cl::Kernel>& kernels, const Loop& loop);
  bool run_part(const cl::Kernel& kernel, const KernelSpec& launch, const Cut& cut,
                cl::Event* event);
  void choose_next_part();

  const DeviceNetwork& network_;
  DeviceStream& stream_;
  const SizedPlan* sized_ = nullptr;
  RequestMemory* memory_ = nullptr;
  size_t step_ = 0;
  // For a step whose launch is cut: where the next segment continues, and how many work-groups it
  // runs.
  size_t next_launch_ = 0, next_group_ = 0, part_groups_ = 0;
  // For a loop: the next iteration, and how many iterations the next segment runs.
  int64_t next_iteration_ = 0, part_iterations_ = 0;
  std::chrono::steady_clock::time_point part_begun_;
  std::vector<LongRead> long_reads_;  // reads of the segment being enqueued
};

}  // namespace clinfer
