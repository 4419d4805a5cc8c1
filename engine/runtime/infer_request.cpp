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
    : network_(std::move(network)),
      stream_(stream),
      sized_(&network_->plan_for(0)),
      by_queue_(*network_, stream) {
  memory_ = make_memory();
  host_inputs_.resize(network_->plan().graph->parameters.size());
  if (network_->cuda != nullptr) {
    by_graph_ = std::make_unique<GraphRun>(*network_, stream);
    run_ = by_graph_.get();
  }
  run_->prepare(*sized_, *memory_);
}

DeviceRequest::~DeviceRequest() {
  if (running_) abandon();
}

std::shared_ptr<RequestMemory> DeviceRequest::make_memory() {
  const size_t bytes = std::max<size_t>(network_->request_bytes(), 4);
  auto memory = std::make_shared<RequestMemory>(*network_, bytes);
  // Inputs that are never set are zero, not whatever the device holds.
  const std::lock_guard lock(stream_.mutex);
  stream_.queue.enqueueFillBuffer(memory->all.buffer, cl_uint{0}, 0, bytes);
  if (network_->cuda != nullptr) stream_.queue.finish();
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
    stream_.queue.enqueueUnmapMemObject(memory_->all.buffer, result);
  if (before == nullptr) return;
  const Plan& plan = network_->plan();
  for (size_t i = 0; i < host_inputs_.size(); ++i) {
    if (is_set_anew(i)) continue;
    const Region& input = plan.region_of({plan.graph->parameters[i], 0});
    stream_.queue.enqueueCopyBuffer(before->all.buffer, memory_->all.buffer, input.offset,
                                    input.offset, input.bytes);
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
  return by_queue_.bound(network_->plan_for(0).place_of(edge), *memory_);
}

bool DeviceRequest::runs_as_graph() const {
  if (by_graph_ == nullptr || given_to_queue_ || by_queue_.visit || !device_outputs_.empty())
    return false;
  return std::ranges::none_of(device_inputs_,
                              [](const auto& input) { return input.second.pending; });
}

std::unique_lock<std::mutex> DeviceRequest::take_stream(const PlanRun& run) const {
  std::unique_lock lock(stream_.mutex);
  stream_.take_turn(&run == by_graph_.get());
  return lock;
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
  by_queue_.events.downloads.clear();
  if (planes_.pending()) {
    const PictureInput& picture = *network_->picture;
    for (int64_t n = 0; n < network_->network_inputs[picture.index].shape[0]; ++n)
      set_picture(picture.index, planes_.frame(n), FrameInput::Source::host, {}, picture.transform,
                  static_cast<size_t>(n));
  }
  leave_results();
  sized_ = &network_->plan_for(images);
  run_ = runs_as_graph() ? static_cast<PlanRun*>(by_graph_.get()) : &by_queue_;
  if (run_->prepare(*sized_, *memory_)) has_new_kernels_ = true;
  run_->begin(*sized_, *memory_);
  enqueue_frames();
  convert_input_memory();
  const auto lock = take_stream();
  upload_inputs();
  given_to_queue_ = false;
  next_step_ = 0;
  given_up_ = cancelled_ = false;
  host_ns_.assign(sized_->plan.steps.size(), 0);
  host_threads_.assign(sized_->plan.steps.size(), 1);
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
  by_queue_.events = {};
  try {
    {
      const std::lock_guard lock(stream_.mutex);  // whoever had the last turn
      done_ = run_->end_of_all();
    }
    signal_.reset();
    constexpr auto kPatience = std::chrono::milliseconds(200);
    // Where one was given up already, the others of the stream wait for the same.
    const bool over =
        done_->is_over() || (!stream_.given_up && sleep_until_over(Clock::now() + kPatience));
    if (over) return;
    stream_.given_up = true;
    std::vector<std::pair<std::vector<std::byte>, std::shared_ptr<ocl::HostMemory>>> uploads;
    for (HostInput& input : host_inputs_)
      uploads.emplace_back(std::exchange(input.bytes, {}), input.memory);
    auto used = std::tuple(network_, memory_, std::move(uploads), std::move(written_),
                           std::move(frames_), std::move(readbacks_), std::move(outputs_));
    leave_in_memory(done_, std::make_shared<decltype(used)>(std::move(used)));
    written_.clear();
    frames_.clear();
    readbacks_.clear();
    outputs_.clear();
  } catch (const std::bad_alloc&) {
    // There is no memory to keep what the device uses elsewhere: it stays here until the device is
    // through.
    try {
      done_->wait();
    } catch (const std::exception&) {
      // As below.
    }
  } catch (const std::exception&) {
    // The device failed: nothing is in flight any more.
  }
}

void DeviceRequest::run_step_by_step(const std::function<void(size_t step)>& visit, size_t images) {
  by_queue_.visit = visit;
  start(images);
  wait({});
  by_queue_.visit = nullptr;
}

void DeviceRequest::run_segment() {
  const Plan& plan = sized_->plan;
  for (auto& [edge, readback] : readbacks_) readback.owner.reset();
  next_step_ = run_->run(next_step_);
  if (run_->is_partway()) {
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
  done_.reset();  // the next one may be the same
  done_ = run_->end();
  signal_.reset();
  wait_estimator_.begin(next_step_, Clock::now());
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
    readback.data = by_queue_.map(region.offset + begin, size);
    readback.owner = memory_;
    return;
  }
  const auto memory = readback.pools[run_].take([&] { return run_->make_host_memory(size); });
  readback.data = memory->data();
  readback.owner = memory;
  run_->read({static_cast<int>(region.memory), static_cast<int64_t>(region.offset + begin)},
             memory->data(), size);
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
  const auto over = [this] { return done_->is_over(); };
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
  // A driver does not call back from work that failed.
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
      if (!run_->is_partway()) stream_.last_finished = Clock::now();  // parts share one deadline
      stream_.given_up = false;
      if (given_up_) {
        running_ = given_up_ = false;
        host_values_.clear();
        return true;
      }
      if (next_step_ >= sized_->plan.steps.size()) break;
      check_cancelled();
      if (run_->is_partway()) {
        const auto lock = take_stream();
        run_segment();
      } else {
        run_host_step();
      }
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

  const auto lock = take_stream();
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
      run_->write(sized_->place_of(edge), bytes.data(), bytes.size());
      written_.push_back(std::move(bytes));
    }
    host_values_[key(edge)] = std::move(outputs[port]);
  }
  ++next_step_;
  run_segment();
  begun_ = Clock::now();  // the device gets all the time, however long the host took
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
  auto& [all_launches, uploads, preprocessing, downloads] = by_queue_.events;
  std::vector<std::vector<double>> launch_ns;
  for (const auto& launches : all_launches) {
    launch_ns.emplace_back();
    for (const std::vector<cl::Event>& events : launches) launch_ns.back().push_back(sum(events));
  }
  Overhead overhead{sum(uploads), sum(preprocessing), sum(downloads), convert_ns, 0};
  // An application that asks late for the results has not made the inference longer: then the
  // device's clock counts.
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
