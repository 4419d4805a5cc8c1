// Infer requests: uploads, launches, host steps, results.
#include "engine/runtime/infer_request.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <tuple>

#include "engine/graph/evaluate.h"
#include "engine/ocl/host_memory.h"
#include "engine/runtime/left_work.h"
#include "kernels/base/host_type.h"
#include "kernels/base/no_answer.h"
#include "kernels/base/work_limit.h"
#include "kernels/frames/clip.h"
#include "kernels/shape_util.h"

namespace clinfer {

using Clock = std::chrono::steady_clock;

DeviceRequest::DeviceRequest(std::shared_ptr<DeviceNetwork> network, DeviceStream& stream)
    : network_(std::move(network)), stream_(stream), sized_(&network_->plan_for(0)) {
  memory_ = make_memory();
  host_inputs_.resize(network_->plan().graph->parameters.size());
  bind(*sized_);
}

DeviceRequest::~DeviceRequest() {
  if (running_) abandon();
}

std::shared_ptr<RequestMemory> DeviceRequest::make_memory() {
  const size_t bytes = std::max<size_t>(network_->request_bytes(), 4);
  auto memory = std::make_shared<RequestMemory>(*network_->context, bytes);
  // Inputs that are never set are zero, not whatever the device holds.
  const std::lock_guard lock(stream_.mutex);
  stream_.queue.enqueueFillBuffer(memory->buffer, cl_uint{0}, 0, bytes);
  return memory;
}

void DeviceRequest::leave_results() {
  outputs_.clear();  // the next ones take their memory
  for (auto& [edge, readback] : readbacks_) readback.owner.reset();
  const auto is_free = [](const auto& memory) { return memory.use_count() == 1; };
  const std::shared_ptr<RequestMemory> before = is_free(memory_) ? nullptr : memory_;
  if (before != nullptr) {
    auto other = std::find_if(other_memories_.begin(), other_memories_.end(), is_free);
    if (other == other_memories_.end())
      other = other_memories_.insert(other_memories_.end(), make_memory());
    memory_.swap(*other);
  }
  // The releasing thread's reads happen before the device writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::lock_guard lock(stream_.mutex);
  for (void* const result : std::exchange(memory_->mapped, {}))
    stream_.queue.enqueueUnmapMemObject(memory_->buffer, result);
  if (before == nullptr) return;
  const Plan& plan = network_->plan();
  for (size_t i = 0; i < host_inputs_.size(); ++i) {
    if (is_set_anew(i)) continue;
    const Region& input = plan.region_of({plan.graph->parameters[i], 0});
    stream_.queue.enqueueCopyBuffer(before->buffer, memory_->buffer, input.offset, input.offset,
                                    input.bytes);
  }
}

bool DeviceRequest::is_set_anew(size_t target) const {
  const HostInput& input = host_inputs_[target];
  if (input.dirty || input.from_memory) return true;
  if (const auto found = device_inputs_.find(target);
      found != device_inputs_.end() && found->second.pending)
    return true;
  size_t images = 0;
  for (const auto& [where, frame] : frames_) images += where.first == target && frame.pending;
  const Shape& shape = network_->network_inputs[target].shape;
  return images != 0 && images == static_cast<size_t>(shape[0]);
}

BoundBuffer DeviceRequest::buffer_of(const Edge& edge) const {
  return bound(network_->plan_for(0).place_of(edge));
}

BoundBuffer DeviceRequest::bound(const ocl::ArgumentPlace& place) const {
  const cl::Buffer* const buffers[] = {&stream_.memory, &memory_->buffer, &network_->weights};
  SubBuffers* const parts[] = {&stream_.parts, &memory_->parts, &network_->weight_parts};
  return {*buffers[place.buffer], place.offset, {}, parts[place.buffer]};
}

void DeviceRequest::bind(const SizedPlan& sized) {
  std::vector<std::vector<cl::Kernel>> all(sized.plan.steps.size());
  for (size_t s = 0; s < all.size(); ++s) {
    if (const PersistentSteps* steps = sized.persistent_at(s)) {
      cl::Kernel kernel = sized.programs->kernel(steps->kernel.program.kernel_name);
      bind_persistent(kernel, {stream_.memory, memory_->buffer, network_->weights}, steps->list,
                      stream_.counters);
      all[s] = {std::move(kernel)};
      s = steps->end - 1;
      continue;
    }
    const std::vector<KernelSpec>& launches = sized.plan.steps[s].kernels.launches;
    for (size_t l = 0; l < launches.size(); ++l) {
      all[s].push_back(sized.programs->kernel(sized.kernel_names[s][l]));
      bind_arguments(all[s].back(), launches[l],
                     [&](const Argument& argument) { return bound(sized.place_of(s, argument)); });
    }
  }
  memory_->kernels[&sized] = std::move(all);
  has_new_kernels_ = true;
}

size_t DeviceRequest::network_input(size_t index) const {
  if (index >= network_->inputs.size())
    throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                             "; the model has " +
                                             std::to_string(network_->inputs.size()));
  return network_->picture && index > network_->picture->index ? index - 1 : index;
}

void DeviceRequest::set_input(size_t index, const Tensor& value) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const size_t target = network_input(index);
  const Port& port = network_->inputs[index];
  if (network_->picture && target == network_->picture->index)
    return planes_.set(index - target, port, value);
  if (value.shape() != port.shape)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + port.name +
                                             "\") is " + to_string(port.shape) +
                                             ", the value given is " + to_string(value.shape()));
  const TensorDesc& desc = stored_input(target);
  replace_frames(target);
  HostInput& input = host_inputs_[target];
  input.bytes.resize(static_cast<size_t>(desc.span()) * size_of(desc.type));
  if (!input.bytes.empty()) scatter_to(value, desc, input.bytes.data());
  input.dirty = true;
}

void DeviceRequest::start(size_t images) try {
  if (running_)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  called_ = Clock::now();
  downloads_.clear();
  if (planes_.pending()) {
    const PictureInput& picture = *network_->picture;
    for (int64_t n = 0; n < network_->network_inputs[picture.index].shape[0]; ++n)
      set_picture(picture.index, planes_.frame(n), Source::host, {}, picture.transform,
                  static_cast<size_t>(n));
  }
  leave_results();
  sized_ = &network_->plan_for(images);
  if (!memory_->kernels.contains(sized_)) bind(*sized_);
  enqueue_frames();
  convert_input_memory();
  const std::lock_guard lock(stream_.mutex);
  upload_inputs();
  next_step_ = next_launch_ = next_group_ = 0;
  next_iteration_ = 0;
  given_up_ = cancelled_ = false;
  host_ns_.assign(sized_->plan.steps.size(), 0);
  host_threads_.assign(sized_->plan.steps.size(), 1);
  events_.clear();
  if (network_->options.perf_count)
    for (const Step& step : sized_->plan.steps) events_.emplace_back(step.kernels.launches.size());
  run_segment();
  begun_ = Clock::now();  // what the driver compiles while it takes the work is not the device's
  running_ = true;
} catch (const cl::Error& error) {
  abandon();
  ocl::rethrow(error, "starting an inference");
} catch (const std::exception&) {
  if (!running_) abandon();
  throw;
}

void DeviceRequest::abandon() noexcept {
  running_ = given_up_ = false;
  for (auto& [where, frame] : frames_) frame.pending = false;
  host_values_.clear();
  uploads_.clear();
  preprocessing_.clear();
  long_reads_.clear();
  try {
    {
      const std::lock_guard lock(stream_.mutex);
      std::vector<cl::Event> others;
      for (cl::CommandQueue* const queue : {&stream_.copies, &stream_.results}) {
        if ((*queue)() == nullptr) continue;
        queue->enqueueMarkerWithWaitList(nullptr, &others.emplace_back());
        queue->flush();
      }
      stream_.queue.enqueueMarkerWithWaitList(others.empty() ? nullptr : &others, &done_);
      stream_.queue.flush();
    }
    signal_.reset();
    constexpr auto kPatience = std::chrono::milliseconds(200);
    // Where one was given up already, the others of the stream wait for the same.
    const bool over = done_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE ||
                      (!stream_.given_up && sleep_until_over(Clock::now() + kPatience));
    if (over) return;
    stream_.given_up = true;
    std::vector<std::pair<std::vector<std::byte>, std::shared_ptr<ocl::HostMemory>>> uploads;
    for (HostInput& input : host_inputs_)
      uploads.emplace_back(std::exchange(input.bytes, {}), input.memory);
    leave_in_memory(
        done_, std::make_shared<std::tuple<decltype(network_), decltype(uploads), decltype(frames_),
                                           decltype(readbacks_), decltype(outputs_)>>(
                   network_, std::move(uploads), std::move(frames_), std::move(readbacks_),
                   std::move(outputs_)));
    frames_.clear();
    readbacks_.clear();
    outputs_.clear();
  } catch (const std::bad_alloc&) {
    // There is no memory to keep what the device uses elsewhere: it stays here until the device is
    // through.
    try {
      stream_.queue.finish();
    } catch (const cl::Error&) {
      // As below.
    }
  } catch (const std::exception&) {
    // The device failed: nothing is in flight any more.
  }
}

void DeviceRequest::run_step_by_step(const std::function<void(size_t step)>& visit) {
  visit_ = visit;
  start(0);
  wait({});
  visit_ = nullptr;
}

void DeviceRequest::run_segment() {
  const Plan& plan = sized_->plan;
  auto& kernels = memory_->kernels.at(sized_);
  for (auto& [edge, readback] : readbacks_) readback.owner.reset();
  for (; next_step_ < plan.steps.size() && !plan.steps[next_step_].on_host; ++next_step_) {
    if (const PersistentSteps* steps = sized_->persistent_at(next_step_)) {
      enqueue_persistent(stream_.queue, kernels.at(next_step_)[0], steps->kernel.list.size(),
                         network_->persistent_groups(), steps->kernel.items, steps->kernel.barriers,
                         stream_.barriers_passed);
      next_step_ = steps->end - 1;
      continue;
    }
    if (!run_step(kernels[next_step_])) break;
    if (visit_) {
      stream_.queue.finish();
      visit_(next_step_);
    }
  }
  if (is_partway()) {
    // Further parts need nothing on the host.
  } else if (next_step_ < plan.steps.size()) {
    for (const Edge& input : plan.steps[next_step_].node->inputs) read_back(input, false);
  } else {
    for (size_t i = 0; i < plan.graph->results.size(); ++i) {
      const Edge& edge = plan.graph->results[i]->inputs[0];
      if (device_outputs_.contains(i))
        deliver_output(i, edge);
      else
        read_back(edge, true);
    }
  }
  end_segment();
  signal_.reset();
  wait_estimator_.begin(next_step_, Clock::now());
}

bool DeviceRequest::run_step(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[next_step_];
  return step.loop ? run_iterations(kernels) : run_launches(kernels);
}

// False where more parts are left.
bool DeviceRequest::run_launches(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[next_step_];
  for (; next_launch_ < kernels.size(); ++next_launch_) {
    cl::Event* const event =
        network_->options.perf_count ? &events_[next_step_][next_launch_].emplace_back() : nullptr;
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

// False where more iterations are left, or parts of one.
bool DeviceRequest::run_iterations(std::vector<cl::Kernel>& kernels) {
  const Step& step = sized_->plan.steps[next_step_];
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

// Sets the arguments that differ from those of the iteration before.
void DeviceRequest::bind_iteration(std::vector<cl::Kernel>& kernels, const Loop& loop) {
  const std::vector<KernelSpec>& launches = sized_->plan.steps[next_step_].kernels.launches;
  for (const Loop::Moving& moving : loop.moving) {
    const std::vector<Argument>& arguments = launches[moving.launch].arguments;
    const ocl::ArgumentPlace place = sized_->place_of(next_step_, loop.at(moving, next_iteration_));
    const bool moved =
        next_iteration_ == 0 ||
        place.buffer != sized_->place_of(next_step_, loop.at(moving, next_iteration_ - 1)).buffer;
    bind_argument(kernels[moving.launch], arguments, moving.argument, bound(place), moved);
  }
}

// False where more parts of the launch are left.
bool DeviceRequest::run_part(const cl::Kernel& kernel, const KernelSpec& launch, const Cut& cut,
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

// Launches the next work-groups or iterations: so many that they should take about a tenth of a
// second.
void DeviceRequest::run_next_part() {
  constexpr double kMostChange = 4;
  const std::chrono::duration<double> taken = Clock::now() - part_begun_;
  const double change =
      std::clamp(kSecondsOfPart / std::max(taken.count(), 1e-6), 1 / kMostChange, kMostChange);
  const auto changed = [&](auto number) {
    return static_cast<decltype(number)>(static_cast<double>(number) * change);
  };
  const Step& step = sized_->plan.steps[next_step_];
  if (next_group_ == 0)
    part_iterations_ = std::max<int64_t>(changed(part_iterations_), 1);
  else
    part_groups_ = std::clamp<size_t>(changed(part_groups_), 1, step.cut(next_launch_).most);
  const std::lock_guard lock(stream_.mutex);
  run_segment();
}

void DeviceRequest::check_cancelled() const {
  if (cancelled_) throw Error(ErrorCode::cancelled, "the inference was cancelled");
}

// A result stays where it is until the next inference, so that a device that shares the host's memory
// hands it out like that. The operand of a host step is overwritten sooner, and so is an input that is a
// result, by set_surface(); small results keep little memory where applications hold many.
void DeviceRequest::read_back(const Edge& edge, bool is_result) {
  if (edge.node->is("Constant") || host_values_.count(key(storage_root(edge)))) return;
  const TensorDesc& desc = edge.node->outputs[edge.port].desc;
  if (desc.elements() == 0) return;
  Readback& readback = readbacks_[key(edge)];
  if (readback.owner) return;
  const auto [low, high] = desc.byte_range();
  const auto begin = static_cast<size_t>(low), size = static_cast<size_t>(high - low);
  const Region& region = sized_->plan.region_of(edge);
  constexpr size_t kWorthMapping = size_t{128} << 10;
  if (is_result && network_->shares_host_memory() && size >= kWorthMapping &&
      !region.root.node->is("Parameter")) {
    void* const data =
        stream_.queue.enqueueMapBuffer(memory_->buffer, CL_FALSE, CL_MAP_READ,
                                       region.offset + begin, size, nullptr, timed(downloads_));
    memory_->mapped.push_back(data);
    readback.data = static_cast<const std::byte*>(data);
    readback.owner = memory_;
    return;
  }
  const auto memory = readback.pool.take(*network_->context, stream_.queue, size);
  readback.data = memory->data();
  readback.owner = memory;
  const cl::Buffer& buffer = region.memory == Memory::stream ? stream_.memory : memory_->buffer;
  constexpr size_t kLong = size_t{8} << 20;
  if (stream_.results() != nullptr && region.memory == Memory::request && size >= kLong) {
    long_reads_.push_back({region.offset + begin, size, memory->data()});
    return;
  }
  stream_.queue.enqueueReadBuffer(buffer, CL_FALSE, region.offset + begin, size, memory->data(),
                                  nullptr, timed(downloads_));
}

void DeviceRequest::end_segment() {
  std::vector<cl::Event> computed(1);
  cl::Event& last = long_reads_.empty() ? done_ : computed[0];
  stream_.queue.enqueueMarkerWithWaitList(nullptr, &last);
  stream_.queue.flush();
  if (long_reads_.empty()) return;
  for (const LongRead& read : std::exchange(long_reads_, {}))
    stream_.results.enqueueReadBuffer(memory_->buffer, CL_FALSE, read.offset, read.bytes, read.to,
                                      &computed, timed(downloads_));
  stream_.results.enqueueMarkerWithWaitList(nullptr, &done_);
  stream_.results.flush();
}

// A tensor on the host, row-major: where it was read to, if it lies there like that.
Tensor DeviceRequest::value_of(const Edge& edge, ElementType type) const {
  if (edge.node->is("Constant"))
    return edge.node->constant.type() == type ? edge.node->constant
                                              : edge.node->constant.convert(type);
  TensorDesc desc = edge.node->outputs[edge.port].desc;
  const Edge root = storage_root(edge);
  if (desc.elements() == 0 && !host_values_.contains(key(root)))
    return Tensor::allocate(type, desc.shape);
  if (const auto found = host_values_.find(key(root)); found != host_values_.end()) {
    if (root == edge)
      return found->second.type() == type ? found->second : found->second.convert(type);
    desc.type = found->second.type();
    return gather_from(desc, found->second.raw(), type);
  }
  const Readback& readback = readbacks_.at(key(edge));
  const auto value = [&] {
    if (desc.type == type && desc.is_row_major())
      return Tensor::view(type, desc.shape, readback.data, readback.owner);
    desc.offset -= desc.byte_range().first / static_cast<int64_t>(size_of(desc.type));
    return gather_from(desc, readback.data, type);
  };
  const OpDef* def = edge.node->def;
  return def && def->rows_depend_on_data ? trim_unused_rows(value()) : value();
}

bool DeviceRequest::lies_as_half(const Edge& edge) const {
  return !edge.node->is("Constant") && !host_values_.contains(key(storage_root(edge))) &&
         edge.node->outputs[edge.port].desc.type == ElementType::f16;
}

// Drivers have no wait with a deadline; they call back from threads that sleep. On devices other
// than CPUs that takes longer than to ask again and again, as drivers do themselves while they
// wait.
bool DeviceRequest::wait_for_device(std::optional<Clock::time_point> deadline) {
  constexpr auto kAsking = std::chrono::milliseconds(5);
  const auto over = [this] {
    return done_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
  };
  const bool awaited =
      !network_->context->device.info.is_cpu && !network_->options.waits_asleep && !over();
  if (awaited) {
    const auto most = deadline.value_or(Clock::time_point::max());
    std::this_thread::sleep_until(std::min(wait_estimator_.until(), most));
    const auto expected = std::max({wait_estimator_.until(), begun_, stream_.last_finished.load()});
    const auto end = std::min(expected + kAsking, most);
    while (!over() && Clock::now() < end) std::this_thread::yield();
  }
  slept_ = !over();
  if (slept_ && !sleep_until_over(deadline)) return false;
  if (awaited) wait_estimator_.end(Clock::now());
  try {
    done_.wait();
  } catch (const cl::Error& error) {
    // The event's own status says how it failed.
    const cl_int status = done_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
    if (error.err() != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST || status >= 0) throw;
    throw cl::Error(status, error.what());
  }
  return true;
}

bool DeviceRequest::sleep_until_over(std::optional<Clock::time_point> deadline) {
  if (signal_ == nullptr) {
    signal_ = std::make_shared<Signal>();
    auto called = std::make_unique<std::shared_ptr<Signal>>(signal_);
    done_.setCallback(
        CL_COMPLETE,
        [](cl_event, cl_int, void* data) {
          const std::unique_ptr<std::shared_ptr<Signal>> owner(
              static_cast<std::shared_ptr<Signal>*>(data));
          Signal& signal = **owner;
          const std::lock_guard lock(signal.mutex);
          signal.over = true;
          signal.changed.notify_all();
        },
        called.get());
    called.release();  // the callback's
  }
  std::unique_lock lock(signal_->mutex);
  const auto over = [this] { return signal_->over; };
  if (deadline) return signal_->changed.wait_until(lock, *deadline, over);
  signal_->changed.wait(lock, over);
  return true;
}

std::optional<Clock::time_point> DeviceRequest::deadline() const {
  if (network_->options.device_timeout.count() == 0) return std::nullopt;
  if (network_->options.driver_compiles && has_new_kernels_) return std::nullopt;
  // Others of the stream that were before it had their own time.
  return std::max(begun_, stream_.last_finished.load()) + network_->options.device_timeout;
}

void DeviceRequest::give_up() {
  given_up_ = true;
  stream_.given_up = true;
  const std::string& layer = network_->largest_layer;
  throw NoAnswer("the device does not answer: " + network_->context->device.info.name +
                 " has not finished an inference of " + network_->name + " in " +
                 std::to_string(network_->options.device_timeout.count()) + " ms" +
                 (layer.empty() ? "" : "; its largest layer is " + layer) +
                 " (device-timeout, DEVICE_TIMEOUT: 0 waits for ever)");
}

bool DeviceRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  if (!running_) return true;
  std::optional<Clock::time_point> until;
  if (timeout) until = Clock::now() + *timeout;
  if (given_up_) begun_ = Clock::now();
  try {
    for (;;) {
      const std::optional<Clock::time_point> most = deadline();
      if (!wait_for_device(until && most ? std::min(*until, *most) : until ? until : most)) {
        if (until && Clock::now() >= *until) return false;
        if (Clock::now() >= *deadline()) give_up();
        continue;
      }
      if (!is_partway()) stream_.last_finished = Clock::now();  // parts share one deadline
      stream_.given_up = false;
      if (given_up_) {
        running_ = given_up_ = false;
        host_values_.clear();
        return true;
      }
      if (next_step_ >= sized_->plan.steps.size()) break;
      check_cancelled();
      if (is_partway())
        run_next_part();
      else
        run_host_step();
    }
    collect_outputs();
    running_ = has_new_kernels_ = false;
    ++*network_->finished;
    return true;
  } catch (const cl::Error& error) {
    abandon();
    ocl::rethrow(error, "an inference");
  } catch (const Error& error) {
    if (!given_up_) abandon();
    throw;
  } catch (...) {
    abandon();
    throw;
  }
}

void DeviceRequest::run_host_step() {
  const Plan& plan = sized_->plan;
  const Step& step = plan.steps[next_step_];
  const auto begin = Clock::now();
  std::vector<Tensor> inputs;
  for (const Edge& input : step.node->inputs) {
    inputs.push_back(value_of(input, input.node->is("Constant")
                                         ? input.node->constant.type()
                                         : host_type(input.node->outputs[input.port].type)));
  }
  std::vector<Tensor> outputs;
  for (const NodeOutput& output : step.node->outputs)
    outputs.push_back(Tensor::allocate(host_type(output.type), output.shape));
  try {
    const WorkLimit limit(
        [&] {
          check_cancelled();
          if (const auto most = deadline(); most && Clock::now() > *most)
            throw NoAnswer("the host has not finished it in " +
                           std::to_string(network_->options.device_timeout.count()) +
                           " ms (device-timeout, DEVICE_TIMEOUT: 0 waits for ever)");
        },
        network_->options.host_threads);
    step.node->def->evaluate(step.desc, inputs, outputs);
    host_threads_[next_step_] = limit.threads_used();
  } catch (const Error& error) {
    throw Error(error.code(), label(*step.node) + ": " + error.what(), error.place());
  }
  host_ns_[next_step_] = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();

  const std::lock_guard lock(stream_.mutex);
  for (size_t port = 0; port < outputs.size(); ++port) {
    const Edge edge{step.node, static_cast<int>(port)};
    const NodeOutput& output = step.node->outputs[port];
    if (output.desc.elements() && plan.region_of(edge).read_by_device) {
      if (outputs[port].shape() != output.shape)
        throw Error(ErrorCode::unsupported,
                    label(*step.node) + ": the device would need its output of shape " +
                        to_string(outputs[port].shape()) + ", which depends on the values");
      std::vector<std::byte> bytes(static_cast<size_t>(output.desc.span()) *
                                   size_of(output.desc.type));
      scatter_to(outputs[port], output.desc, bytes.data());
      const BoundBuffer target = bound(sized_->place_of(edge));
      stream_.queue.enqueueWriteBuffer(target.buffer, CL_TRUE, static_cast<size_t>(target.offset),
                                       bytes.size(), bytes.data());
    }
    host_values_[key(edge)] = std::move(outputs[port]);
  }
  ++next_step_;
  run_segment();
  begun_ = Clock::now();  // the device gets all the time, however long the host took
}

cl::Event* DeviceRequest::timed(std::vector<cl::Event>& events) {
  return network_->options.perf_count ? &events.emplace_back() : nullptr;
}

void DeviceRequest::collect_outputs() {
  const auto begin = Clock::now();
  const Graph& graph = *sized_->plan.graph;
  outputs_.clear();
  for (size_t i = 0; i < graph.results.size(); ++i) {
    if (device_outputs_.contains(i)) {
      outputs_.emplace_back();
      continue;
    }
    const ElementType port = network_->outputs[i].type;
    const Edge& edge = graph.results[i]->inputs[0];
    ElementType type = host_type(port);
    if (is_float(port) && network_->options.half_outputs && lies_as_half(edge))
      type = ElementType::f16;
    outputs_.push_back(value_of(edge, type));
  }
  host_values_.clear();
  if (network_->options.perf_count)
    add_times(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
}

void DeviceRequest::add_times(double convert_ns) {
  const auto sum = [](const std::vector<cl::Event>& events) {
    double ns = 0;
    for (const cl::Event& event : events)
      ns += static_cast<double>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                event.getProfilingInfo<CL_PROFILING_COMMAND_START>());
    return ns;
  };
  std::vector<std::vector<double>> launch_ns;
  for (const auto& launches : events_) {
    launch_ns.emplace_back();
    for (const std::vector<cl::Event>& events : launches) launch_ns.back().push_back(sum(events));
  }
  Overhead overhead{sum(uploads_), sum(preprocessing_), sum(downloads_), convert_ns, 0};
  // An application that asks late for the results has not made the inference longer: then the
  // device's clock counts.
  if (slept_ || downloads_.empty()) {
    overhead.total_ns = std::chrono::duration<double, std::nano>(Clock::now() - called_).count();
  } else {
    const auto& first = !uploads_.empty()         ? uploads_
                        : !preprocessing_.empty() ? preprocessing_
                                                  : downloads_;
    cl_ulong from = first.front().getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>();
    for (const auto& launches : events_)
      if (!launches.empty() && !launches.front().empty())
        from = std::min(from,
                        launches.front().front().getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>());
    const cl_ulong to = downloads_.back().getProfilingInfo<CL_PROFILING_COMMAND_END>();
    overhead.total_ns = static_cast<double>(to - std::min(from, to)) + convert_ns;
  }
  uploads_.clear();
  preprocessing_.clear();
  network_->add_times(launch_ns, host_ns_, host_threads_, overhead);
}

const Tensor& DeviceRequest::output(size_t index) const {
  if (index >= outputs_.size())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             " before an inference has finished");
  if (device_outputs_.contains(index))
    throw Error(ErrorCode::bad_argument,
                "output " + std::to_string(index) + " goes to memory of the device");
  return outputs_[index];
}

}  // namespace clinfer
