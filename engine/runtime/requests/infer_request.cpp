// Runs an inference: launches, steps on the host, waiting for the device.
#include "engine/runtime/requests/infer_request.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <tuple>

#include "engine/graph/evaluate.h"
#include "engine/ocl/forks.h"
#include "engine/ocl/host_memory.h"
#include "engine/runtime/requests/left_work.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/host_type.h"
#include "kernels/base/no_answer.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/frames/clip.h"
#include "kernels/shape_util.h"

namespace clinfer {

using Clock = std::chrono::steady_clock;

DeviceRequest::DeviceRequest(std::shared_ptr<const DeviceNetwork> network, DeviceStream& stream)
    : work_(std::move(network), stream),
      network_(*work_.network),
      stream_(stream),
      inputs_(work_),
      outputs_(work_),
      states_(work_) {}

DeviceRequest::~DeviceRequest() {
  const DefaultFloats floats;
  if (work_.running) abandon();
}

Tensor DeviceRequest::state(size_t index) const {
  const DefaultFloats floats;
  try {
    return states_.value(index);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "reading a state");
  }
}

void DeviceRequest::set_state(size_t index, const Tensor& value) {
  const DefaultFloats floats;
  try {
    states_.set(index, value);
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "setting a state");
  }
}

void DeviceRequest::leave_results() {
  outputs_.clear();
  const auto is_free = [](const auto& memory) { return memory.use_count() == 1; };
  std::shared_ptr<RequestMemory>& memory = work_.memory;
  const std::shared_ptr<RequestMemory> before = is_free(memory) ? nullptr : memory;
  if (before != nullptr) {
    auto other = std::find_if(other_memories_.begin(), other_memories_.end(), is_free);
    if (other == other_memories_.end())
      other = other_memories_.insert(other_memories_.end(), work_.make_memory());
    memory.swap(*other);
  }
  // Orders the reads of the thread that released a result before the device's writes.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::lock_guard lock(stream_.mutex);
  for (void* const result : std::exchange(memory->mapped, {}))
    stream_.queue.enqueueUnmapMemObject(memory->all.buffer, result);
  if (before != nullptr) inputs_.take_along(*before);
}

void DeviceRequest::start(size_t images) {
  const DefaultFloats floats;
  if (work_.running)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  ocl::refuse_forks();
  called_ = Clock::now();
  inputs_.begin(images);
  outputs_.check();
  try {
    enqueue(images);
  } catch (const cl::Error& error) {
    abandon();
    ocl::rethrow(error, "starting an inference");
  } catch (const std::exception&) {
    abandon();
    throw;
  }
  // Starts after the driver has taken the work: compiling it is not the device's time.
  begun_ = Clock::now();
  work_.running = true;
}

void DeviceRequest::enqueue(size_t images) {
  work_.by_queue.events.downloads.clear();
  leave_results();
  const bool by_graph = work_.by_graph != nullptr && !keeps_to_queue_ && !work_.by_queue.visit &&
                        !inputs_.need_queue() && !outputs_.need_queue();
  work_.sized = &network_.plan_for(images);
  work_.run = by_graph ? static_cast<PlanRun*>(work_.by_graph.get()) : &work_.by_queue;
  if (work_.run->prepare(*work_.sized, *work_.memory)) work_.has_new_kernels = true;
  work_.run->begin(*work_.sized, *work_.memory);
  if (work_.run == &work_.by_queue) {
    InPlace::Wanted in_place;
    inputs_.find_in_place(*work_.sized, in_place);
    outputs_.find_in_place(*work_.sized, in_place);
    work_.in_place.bind(work_.by_queue, *work_.sized, *work_.memory, in_place);
  }
  inputs_.enqueue();
  const auto lock = work_.take_stream();
  states_.enqueue();
  outputs_.lend();
  next_step_ = 0;
  given_up_ = cancelled_ = false;
  host_ns_.assign(work_.sized->plan.steps.size(), 0);
  host_threads_.assign(work_.sized->plan.steps.size(), 1);
  run_segment();
}

void DeviceRequest::abandon() noexcept {
  work_.running = given_up_ = false;
  inputs_.abandon();
  outputs_.forget_values();
  work_.by_queue.events = {};
  done_.reset();
  try {
    {
      const std::lock_guard lock(stream_.mutex);  // any request may have used the stream last
      inputs_.take_back();
      outputs_.take_back();
      done_ = work_.run->end_of_all();
    }
    signal_.reset();
    constexpr auto kPatience = std::chrono::milliseconds(200);
    // Waits only once for a stuck stream: after one inference was given up, the others of the
    // stream would wait for the same work.
    const bool over =
        done_->is_over() || (!stream_.given_up && sleep_until_over(Clock::now() + kPatience));
    if (over) return;
    stream_.given_up = true;
    auto used = std::tuple(work_.network, work_.memory, std::exchange(written_, {}),
                           inputs_.leave(), outputs_.leave());
    leave_in_memory(done_, std::make_shared<decltype(used)>(std::move(used)));
  } catch (const std::exception&) {
    wait_for_all();
  }
}

// Is needed where there is no memory: then nothing can keep alive what the device uses. If the device
// failed, nothing is in flight.
void DeviceRequest::wait_for_all() noexcept try {
  if (done_ != nullptr) {
    done_->wait();
    return;
  }
  const std::lock_guard lock(stream_.mutex);
  work_.run->finish();
} catch (const std::exception&) {
}

void DeviceRequest::run_step_by_step(const std::function<void(size_t step)>& visit, size_t images) {
  work_.by_queue.visit = visit;
  start(images);
  wait({});
  work_.by_queue.visit = nullptr;
}

void DeviceRequest::run_segment() {
  const Plan& plan = work_.sized->plan;
  outputs_.begin_segment();
  next_step_ = work_.run->run(next_step_);
  if (work_.run->is_partway()) {
    // The next part of the launch reads nothing on the host.
  } else if (next_step_ < plan.steps.size()) {
    outputs_.read_operands(*plan.steps[next_step_].node);
  } else {
    outputs_.read_results();
    states_.save(outputs_);
    inputs_.take_back();
    outputs_.take_back();
  }
  done_.reset();  // frees the completion, which end() may use again
  done_ = work_.run->end();
  signal_.reset();
  wait_estimator_.begin(next_step_, Clock::now());
}

void DeviceRequest::check_cancelled() const {
  if (cancelled_) throw Error(ErrorCode::cancelled, "the inference was cancelled");
}

// Drivers offer no wait with a deadline, only callbacks from threads that sleep. On devices other
// than CPUs a callback takes longer than polling, which drivers do themselves while they wait.
bool DeviceRequest::wait_for_device(std::optional<Clock::time_point> deadline) {
  constexpr auto kAsking = std::chrono::milliseconds(5);
  const auto over = [this] { return done_->is_over(); };
  const bool awaited =
      !network_.context->device.info.is_cpu && !network_.options.waits_asleep && !over();
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
  done_->wait();
  return true;
}

bool DeviceRequest::sleep_until_over(std::optional<Clock::time_point> deadline) {
  if (signal_ == nullptr) {
    signal_ = std::make_shared<Signal>();
    done_->call_when_over([signal = signal_] {
      const std::lock_guard lock(signal->mutex);
      signal->over = true;
      signal->changed.notify_all();
    });
  }
  std::unique_lock lock(signal_->mutex);
  const auto over = [this] { return signal_->over; };
  // Polls as well, because a driver does not call back from work that failed.
  constexpr auto kLookAgain = std::chrono::milliseconds(100);
  for (;;) {
    const auto now = Clock::now();
    if (deadline && now >= *deadline) return over();
    const auto next = now + kLookAgain;
    if (signal_->changed.wait_until(lock, deadline ? std::min(*deadline, next) : next, over) ||
        done_->is_over())
      return true;
  }
}

std::optional<Clock::time_point> DeviceRequest::deadline() const {
  if (network_.options.device_timeout.count() == 0) return std::nullopt;
  if (network_.options.driver_compiles && work_.has_new_kernels) return std::nullopt;
  // Starts no earlier than at the end of the stream's last inference: those before it had their own
  // time.
  return std::max(begun_, stream_.last_finished.load()) + network_.options.device_timeout;
}

void DeviceRequest::give_up() {
  given_up_ = true;
  stream_.given_up = true;
  const std::string& layer = network_.largest_layer;
  throw NoAnswer("the device does not answer: " + network_.context->device.info.name +
                 " has not finished an inference of " + network_.name + " in " +
                 std::to_string(network_.options.device_timeout.count()) + " ms" +
                 (layer.empty() ? "" : "; its largest layer is " + layer) +
                 " (device-timeout, DEVICE_TIMEOUT: 0 waits for ever)");
}

bool DeviceRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  const DefaultFloats floats;
  if (!work_.running) return true;
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
      if (!work_.run->is_partway())
        stream_.last_finished = Clock::now();  // all parts share one deadline
      stream_.given_up = false;
      if (given_up_) {
        work_.running = given_up_ = false;
        outputs_.forget_values();
        return true;
      }
      if (next_step_ >= work_.sized->plan.steps.size()) break;
      check_cancelled();
      if (work_.run->is_partway()) {
        const auto lock = work_.take_stream();
        run_segment();
      } else {
        run_host_step();
      }
    }
    collect_outputs();
    states_.keep();
    work_.running = work_.has_new_kernels = false;
    ++*network_.finished;
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
  const Plan& plan = work_.sized->plan;
  const Step& step = plan.steps[next_step_];
  const auto begin = Clock::now();
  std::vector<Tensor> inputs;
  for (const Edge& input : step.node->inputs) {
    inputs.push_back(outputs_.value_of(
        input, input.node->is("Constant") ? input.node->constant.type()
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
                           std::to_string(network_.options.device_timeout.count()) +
                           " ms (device-timeout, DEVICE_TIMEOUT: 0 waits for ever)");
        },
        network_.options.host_threads);
    step.node->def->evaluate(step.desc, inputs, outputs);
    host_threads_[next_step_] = limit.threads_used();
  } catch (const Error& error) {
    throw Error(error.code(), label(*step.node) + ": " + error.what(), error.place());
  }
  host_ns_[next_step_] = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();

  const auto lock = work_.take_stream();
  written_.clear();
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
      work_.run->write(work_.sized->place_of(edge), bytes.data(), bytes.size());
      written_.push_back(std::move(bytes));
    }
    outputs_.set_value(edge, std::move(outputs[port]));
  }
  ++next_step_;
  run_segment();
  // Starts anew, so that the device has its full time however long the host took.
  begun_ = Clock::now();
}

void DeviceRequest::collect_outputs() {
  const auto begin = Clock::now();
  outputs_.collect();
  if (network_.options.perf_count)
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
  auto& [all_launches, uploads, preprocessing, downloads] = work_.by_queue.events;
  std::vector<std::vector<double>> launch_ns;
  for (const auto& launches : all_launches) {
    launch_ns.emplace_back();
    for (const std::vector<cl::Event>& events : launches) launch_ns.back().push_back(sum(events));
  }
  Overhead overhead{sum(uploads), sum(preprocessing), sum(downloads), convert_ns, 0};
  // Uses the device's clock where the application asked late for the results, which did not make
  // the inference longer.
  if (slept_ || downloads.empty()) {
    overhead.total_ns = std::chrono::duration<double, std::nano>(Clock::now() - called_).count();
  } else {
    const auto& first = !uploads.empty()         ? uploads
                        : !preprocessing.empty() ? preprocessing
                                                 : downloads;
    cl_ulong from = first.front().getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>();
    for (const auto& launches : all_launches)
      if (!launches.empty() && !launches.front().empty())
        from = std::min(from,
                        launches.front().front().getProfilingInfo<CL_PROFILING_COMMAND_QUEUED>());
    const cl_ulong to = downloads.back().getProfilingInfo<CL_PROFILING_COMMAND_END>();
    overhead.total_ns = static_cast<double>(to - std::min(from, to)) + convert_ns;
  }
  uploads.clear();
  preprocessing.clear();
  network_.add_times(launch_ns, host_ns_, host_threads_, overhead);
}

}  // namespace clinfer
