// Enqueues the launches of a plan.
#include "engine/runtime/run/queue_run.h"

#include <algorithm>

namespace clinfer {

using Clock = std::chrono::steady_clock;

BoundBuffer QueueRun::bound(const ocl::ArgumentPlace& place) const {
  return bound(place, *memory_);
}

BoundBuffer QueueRun::bound(const ocl::ArgumentPlace& place, RequestMemory& memory) const {
  const cl::Buffer* const buffers[] = {&stream_.memory.buffer, &memory.all.buffer,
                                       &network_.weights.buffer};
  SubBuffers* const parts[] = {&stream_.parts, &memory.parts, &network_.weight_parts};
  return {*buffers[place.buffer], place.offset, {}, parts[place.buffer]};
}

bool QueueRun::prepare(const SizedPlan& sized, RequestMemory& memory) {
  if (memory.kernels.contains(&sized)) return false;
  std::vector<std::vector<cl::Kernel>> all(sized.plan.steps.size());
  for (size_t s = 0; s < all.size(); ++s) {
    if (const PersistentSteps* steps = sized.persistent_at(s)) {
      cl::Kernel kernel = sized.programs->take_kernel(steps->kernel.program.kernel_name);
      bind_persistent(kernel, {stream_.memory.buffer, memory.all.buffer, network_.weights.buffer},
                      steps->list, stream_.counters);
      all[s] = {std::move(kernel)};
      s = steps->end - 1;
      continue;
    }
    const std::vector<KernelSpec>& launches = sized.plan.steps[s].kernels.launches;
    for (size_t l = 0; l < launches.size(); ++l) {
      all[s].push_back(sized.programs->take_kernel(sized.kernel_names[s][l]));
      bind_arguments(all[s].back(), launches[l], [&](const Argument& argument) {
        return bound(sized.place_of(s, argument), memory);
      });
    }
  }
  memory.kernels[&sized] = {sized.programs, std::move(all)};
  return true;
}

void QueueRun::begin(const SizedPlan& sized, RequestMemory& memory) {
  sized_ = &sized;
  memory_ = &memory;
  next_launch_ = next_group_ = 0;
  next_iteration_ = 0;
  long_reads_.clear();
  events.launches.clear();
  if (network_.options.perf_count)
    for (const Step& step : sized.plan.steps)
      events.launches.emplace_back(step.kernels.launches.size());
}

std::shared_ptr<ocl::HostMemory> QueueRun::make_host_memory(size_t bytes) const {
  return std::make_shared<ocl::HostMemory>(*network_.context, stream_.queue, bytes);
}

void QueueRun::write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) {
  const BoundBuffer target = bound(to);
  stream_.queue.enqueueWriteBuffer(target.buffer, CL_FALSE, static_cast<size_t>(target.offset),
                                   bytes, from, nullptr, timed(events.uploads));
}

size_t QueueRun::run(size_t first) {
  const Plan& plan = sized_->plan;
  auto& kernels = memory_->kernels.at(sized_).steps;
  step_ = first;
  if (is_partway()) choose_next_part();
  for (; step_ < plan.steps.size() && !plan.steps[step_].on_host; ++step_) {
    if (const PersistentSteps* steps = sized_->persistent_at(step_)) {
      enqueue_persistent(stream_.queue, kernels.at(step_)[0], steps->kernel.list.size(),
                         network_.persistent_groups());
      step_ = steps->end - 1;
      continue;
    }
    if (!run_step(kernels[step_])) break;
    if (visit) {
      stream_.queue.finish();
      visit(step_);
    }
  }
  return step_;
}

bool QueueRun::run_step(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[step_];
  return step.loop ? run_iterations(kernels) : run_launches(kernels);
}

// Returns false if parts are left to run.
bool QueueRun::run_launches(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[step_];
  for (; next_launch_ < kernels.size(); ++next_launch_) {
    cl::Event* const event = network_.options.perf_count
                                 ? &events.launches[step_][next_launch_].emplace_back()
                                 : nullptr;
    const KernelSpec& launch = step.kernels.launches[next_launch_];
    if (const Cut cut = step.cut(next_launch_)) {
      if (!run_part(kernels[next_launch_], launch, cut, event)) return false;
    } else {
      enqueue(stream_.queue, kernels[next_launch_], launch, event);
    }
  }
  next_launch_ = 0;
  return true;
}

// Returns false if iterations, or parts of one, are left to run.
bool QueueRun::run_iterations(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[step_];
  if (!is_partway()) part_iterations_ = step.loop->first_part;
  const int64_t end = std::min(next_iteration_ + part_iterations_, step.loop->count);
  part_begun_ = Clock::now();
  for (; next_iteration_ < end; ++next_iteration_) {
    if (next_group_ == 0) bind_iteration(kernels, *step.loop);
    if (!run_launches(kernels)) return false;
  }
  if (end < step.loop->count) return false;
  next_iteration_ = 0;
  return true;
}

// Sets those arguments that differ from the previous iteration's.
void QueueRun::bind_iteration(std::vector<cl::Kernel>& kernels, const Loop& loop) {
  const std::vector<KernelSpec>& launches = sized_->plan.steps[step_].kernels.launches;
  for (const Loop::Moving& moving : loop.moving) {
    const std::vector<Argument>& arguments = launches[moving.launch].arguments;
    const ocl::ArgumentPlace place = sized_->place_of(step_, loop.at(moving, next_iteration_));
    const bool moved =
        next_iteration_ == 0 ||
        place.buffer != sized_->place_of(step_, loop.at(moving, next_iteration_ - 1)).buffer;
    bind_argument(kernels[moving.launch], arguments, moving.argument, bound(place), moved);
  }
}

// Returns false if parts of the launch are left to run.
bool QueueRun::run_part(const cl::Kernel& kernel, const KernelSpec& launch, const Cut& cut,
                        cl::Event* event) {
  if (next_group_ == 0) part_groups_ = cut.first;
  const size_t count = std::min(part_groups_, cut.groups - next_group_);
  enqueue_part(stream_.queue, kernel, launch, cut, next_group_, count, event);
  part_begun_ = Clock::now();
  next_group_ += count;
  if (next_group_ < cut.groups) return false;
  next_group_ = 0;
  return true;
}

// Chooses how many work-groups or iterations to run next, so that they take about a tenth of a
// second.
void QueueRun::choose_next_part() {
  constexpr double kMostChange = 4;
  const std::chrono::duration<double> taken = Clock::now() - part_begun_;
  const double change =
      std::clamp(kSecondsOfPart / std::max(taken.count(), 1e-6), 1 / kMostChange, kMostChange);
  const auto changed = [&](auto number) {
    return static_cast<decltype(number)>(static_cast<double>(number) * change);
  };
  const Step& step = sized_->plan.steps[step_];
  if (next_group_ == 0)
    part_iterations_ = std::max<int64_t>(changed(part_iterations_), 1);
  else
    part_groups_ = std::clamp<size_t>(changed(part_groups_), 1, step.cut(next_launch_).most);
}

const std::byte* QueueRun::map(size_t offset, size_t bytes) {
  void* const data = stream_.queue.enqueueMapBuffer(
      memory_->all.buffer, CL_FALSE, CL_MAP_READ, offset, bytes, nullptr, timed(events.downloads));
  memory_->mapped.push_back(data);
  return static_cast<const std::byte*>(data);
}

void QueueRun::read(const ocl::ArgumentPlace& from, void* to, size_t bytes) {
  constexpr size_t kLong = size_t{8} << 20;
  const BoundBuffer source = bound(from);
  const auto offset = static_cast<size_t>(source.offset);
  if (stream_.results() != nullptr && from.buffer == static_cast<int>(Memory::request) &&
      bytes >= kLong) {
    long_reads_.push_back({offset, bytes, to});
    return;
  }
  stream_.queue.enqueueReadBuffer(source.buffer, CL_FALSE, offset, bytes, to, nullptr,
                                  timed(events.downloads));
}

std::shared_ptr<Completion> QueueRun::end() {
  std::vector<cl::Event> computed(1);
  stream_.queue.enqueueMarkerWithWaitList(nullptr, &computed[0]);
  stream_.queue.flush();
  if (long_reads_.empty()) return std::make_shared<QueueCompletion>(computed[0]);
  for (const LongRead& read : std::exchange(long_reads_, {}))
    stream_.results.enqueueReadBuffer(memory_->all.buffer, CL_FALSE, read.offset, read.bytes,
                                      read.to, &computed, timed(events.downloads));
  cl::Event done;
  stream_.results.enqueueMarkerWithWaitList(nullptr, &done);
  stream_.results.flush();
  return std::make_shared<QueueCompletion>(done);
}

std::shared_ptr<Completion> QueueRun::end_of_all() {
  std::vector<cl::Event> others;
  for (cl::CommandQueue* const queue : {&stream_.copies, &stream_.results}) {
    if ((*queue)() == nullptr) continue;
    queue->enqueueMarkerWithWaitList(nullptr, &others.emplace_back());
    queue->flush();
  }
  cl::Event over;
  stream_.queue.enqueueMarkerWithWaitList(others.empty() ? nullptr : &others, &over);
  stream_.queue.flush();
  return std::make_shared<QueueCompletion>(over);
}

void QueueRun::finish() {
  for (const cl::CommandQueue* const queue : {&stream_.copies, &stream_.results, &stream_.queue})
    if ((*queue)() != nullptr) queue->finish();
}

}  // namespace clinfer
