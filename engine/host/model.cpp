// The first tier: a compiled model and its requests on the host.
#include "engine/host/model.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/runtime/model.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/host_type.h"
#include "kernels/base/system/processors.h"
#include "kernels/base/system/threads.h"
#include "kernels/base/system/work_limit.h"
#include "kernels/frames/clip.h"
#include "kernels/frames/preprocess.h"

namespace clinfer::host {

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kMostThreads = 8;
constexpr int kLowerPriority = 19;  // a nice level

[[noreturn]] void no_sharing(SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::unsupported, "the first tier computes on the host: it imports nothing",
              place);
}

std::string seconds_text(double seconds) {
  return std::to_string(static_cast<int64_t>(std::ceil(seconds * 1000))) + " ms";
}

}  // namespace

HostModel::HostModel(std::shared_ptr<const Model> model, const Config& config,
                     const std::function<void()>& may_go_on, double longest)
    : model_(std::move(model)), problem_("the first tier computes on the host") {
  const auto start = Clock::now();
  device_.id = "host";
  device_.name = "the host, while the device's kernels are compiled";
  device_.is_cpu = true;
  const unsigned cores = available_processors();
  device_.compute_units = cores;
  threads_ = std::min(cores, kMostThreads);
  if (config.max_num_threads != 0) threads_ = std::min(threads_, config.max_num_threads);
  auto graph = model_->graph().clone();
  if (config.batch != kAutoBatch) batch_ = config.batch;
  if (batch_ != 0) set_batch(*graph, batch_);
  network_inputs_ = inputs_ = input_ports(*graph);
  if (config.nv12_two_inputs) {
    picture_ = find_picture(network_inputs_);
    inputs_ = with_planes(network_inputs_, *picture_);
  }
  outputs_ = output_ports(*graph);
  states_ = states_of(*graph);
  network_ = std::make_unique<const Network>(std::move(graph), config.unroll_loops, may_go_on);
  const double seconds = network_->seconds() / threads_;
  if (seconds > longest)
    throw Error(ErrorCode::unsupported, "an inference on the host is estimated to take " +
                                            seconds_text(seconds) + ", most of it in " +
                                            network_->longest());
  load_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::unique_ptr<InferRequest> HostModel::create_request() {
  const DefaultFloats floats;
  return std::make_unique<HostRequest>(shared_from_this());
}

std::shared_ptr<ImportedSurface> HostModel::import_surface(unsigned) { no_sharing(); }
std::string HostModel::check_surface(const std::shared_ptr<ImportedSurface>&, const Frame&) {
  no_sharing();
}
std::shared_ptr<ImportedMemory> HostModel::import_memory(MemoryHandle, int, size_t) {
  no_sharing();
}
std::string HostModel::check_memory(const ImportedPlanes&, const Frame&, const Frame&) {
  no_sharing();
}
std::shared_ptr<FrameMemory> HostModel::allocate_frame_memory(size_t) { no_sharing(); }

std::vector<StepProfile> HostModel::profile() const {
  throw Error(ErrorCode::bad_argument, "the first tier has no performance counters");
}

unsigned HostModel::enter() const {
  if (!had_first_.exchange(true)) return threads_;
  const auto thread = static_cast<id_t>(gettid());
  const int nice = getpriority(PRIO_PROCESS, thread);
  setpriority(PRIO_PROCESS, thread, std::min(19, nice + kLowerPriority));
  return std::max(1u, threads_ / 2);
}

void HostModel::note(SeenFrame seen) const {
  seen.frame.planes = {};
  const std::lock_guard lock(mutex_);
  last_frame_ = std::move(seen);
}

std::optional<HostModel::SeenFrame> HostModel::last_frame() const {
  const std::lock_guard lock(mutex_);
  return last_frame_;
}

// ---- requests ----------------------------------------------------------------------------------

HostRequest::HostRequest(std::shared_ptr<const HostModel> model) : model_(std::move(model)) {
  // Sets all inputs to zero, as on a device, so that one that is never set is defined.
  for (const Port& port : model_->network_inputs())
    inputs_.push_back(Tensor::allocate(host_type(port.type), port.shape));
  states_.resize(model_->states().size());
}

HostRequest::~HostRequest() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
}

void HostRequest::check_idle() const {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
}

size_t HostRequest::network_input(size_t index) const {
  const size_t inputs = model_->inputs().size();
  if (index >= inputs)
    throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                             "; the model has " + std::to_string(inputs));
  return model_->picture() && index > model_->picture()->index ? index - 1 : index;
}

void HostRequest::set_input(size_t index, const Tensor& value) {
  const DefaultFloats floats;
  check_idle();
  const size_t target = network_input(index);
  const Port& port = model_->inputs()[index];
  if (model_->picture() && target == model_->picture()->index)
    return planes_.set(index - target, port, value);
  if (value.shape() != port.shape)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + port.name +
                                             "\") is " + to_string(port.shape) +
                                             ", the value given is " + to_string(value.shape()));
  inputs_[target] = value.convert(host_type(port.type));
  from_memory_.erase(target);
  lost_.found(target);
  std::erase_if(pictures_, [&](const auto& picture) { return picture.first.first == target; });
}

std::span<std::byte> HostRequest::input_memory(size_t index) {
  check_idle();
  const size_t target = network_input(index);
  if (model_->picture() && target == model_->picture()->index)
    throw Error(ErrorCode::unsupported, "input " + std::to_string(index) +
                                            " is a plane of a picture of any size: use "
                                            "set_input() or set_frame()");
  const Port& port = model_->network_inputs()[target];
  Tensor& memory = memories_[target];
  if (memory.empty()) memory = Tensor::allocate(port.type, port.shape);
  from_memory_.insert(target);
  lost_.found(target);
  std::erase_if(pictures_, [&](const auto& picture) { return picture.first.first == target; });
  return {static_cast<std::byte*>(memory.raw_mutable()), memory.bytes()};
}

Placement HostRequest::set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                                 size_t image, const FrameMemory* memory) {
  const DefaultFloats floats;
  check_idle();
  if (memory != nullptr)
    throw Error(ErrorCode::bad_argument, "the model does not fetch from this frame memory");
  const size_t target = network_input(index);
  const Port& port = model_->network_inputs()[target];
  const Shape& shape = port.shape;
  check_image(index, port, frame, transform, image);
  // Refuses the frames that a device would refuse.
  std::array<DevicePlane, 3> planes;
  for (size_t p = 0; p < 3; ++p) planes[p].stride = frame.strides[p];
  int number = 0;
  const TensorDesc out = image_in(TensorDesc::row_major(port.type, shape), transform.nhwc,
                                  static_cast<int64_t>(image), number);
  plan_preprocess(frame, planes, transform, out, number, kPreprocessFamily.heuristic({}, {}));
  // Takes over what was written to the input's memory, for the other images.
  if (from_memory_.erase(target) != 0) read_memory(target);
  pictures_[{target, image}] = {frame, transform};
  lost_.found({target, image});
  model_->note({index, frame, transform});
  const size_t width_axis = shape.size() - (transform.nhwc ? 2 : 1);
  return placement_of(frame, transform, static_cast<int>(shape[width_axis]),
                      static_cast<int>(shape[width_axis - 1]));
}

Placement HostRequest::set_surface(size_t, const std::shared_ptr<ImportedSurface>&, const Frame&,
                                   const FrameTransform&, size_t) {
  no_sharing();
}

Placement HostRequest::set_memory(size_t, const ImportedPlanes&, const Frame&,
                                  const FrameTransform&, size_t) {
  no_sharing();
}

// Copies, because the application will write to its memory again and convert() to the same type
// would share it.
void HostRequest::read_memory(size_t target) {
  const Tensor& memory = memories_.at(target);
  Tensor& value = inputs_[target] = Tensor::allocate(host_type(memory.type()), memory.shape());
  scatter_to(memory, TensorDesc::row_major(value.type(), value.shape()), value.raw_mutable());
}

void HostRequest::start(size_t images) {
  const DefaultFloats floats;
  if (running_)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  if (planes_.pending()) {
    const PictureInput& picture = *model_->picture();
    for (int64_t n = 0; n < model_->network_inputs()[picture.index].shape[0]; ++n)
      pictures_[{picture.index, static_cast<size_t>(n)}] = {planes_.frame(n), picture.transform};
  }
  lost_.check(model_->network_inputs(), images, kNeverRead);
  outputs_.clear();
  if (thread_.joinable()) thread_.join();
  for (const size_t target : from_memory_) read_memory(target);
  error_ = nullptr;
  over_ = false;
  stopped_ = false;
  // Starts a thread for each inference, because a thread that has lowered its priority cannot raise
  // it again.
  thread_ = start_thread([this] {
    std::exception_ptr error;
    try {
      compute();
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
      over_ = true;
    }
    changed_.notify_all();
  });
  running_ = true;
}

void HostRequest::compute() {
  constexpr auto kAskAgain = std::chrono::milliseconds(20);
  const auto not_stopped = [this] {
    if (stopped_) throw Error(ErrorCode::cancelled, "nobody wants the results any more");
  };
  std::unique_lock turn(model_->turn(), std::defer_lock);
  while (!turn.try_lock_for(kAskAgain)) not_stopped();
  // Sets no deadline: a host that is slow, or busy with the compilers, still finishes.
  Work work;
  work.threads = model_->enter();
  work.may_go_on = not_stopped;
  outputs_ = infer(work);
}

std::vector<Tensor> HostRequest::infer(const Work& work) {
  const DefaultFloats floats;
  const WorkLimit limit(work.may_go_on, work.threads);
  fill_pictures();
  // States follow the inputs and outputs.
  std::vector<Tensor> inputs = inputs_;
  for (size_t i = 0; i < states_.size(); ++i) {
    const StatePlaces& state = model_->states()[i];
    inputs.resize(std::max(inputs.size(), std::max(state.parameter, state.is_new.value_or(0)) + 1));
    inputs[state.parameter] = states_[i].empty() ? initial_state(i) : states_[i];
    if (!state.is_new) continue;
    Tensor& is_new = inputs[*state.is_new] = Tensor::allocate(ElementType::boolean, {});
    *static_cast<uint8_t*>(is_new.raw_mutable()) = states_[i].empty();
  }
  std::vector<Tensor> results = model_->network().infer(work, inputs);
  for (size_t i = 0; i < states_.size(); ++i) {
    const StatePlaces& state = model_->states()[i];
    states_[i] = state.result ? results[*state.result] : inputs[state.parameter];
  }
  results.resize(model_->outputs().size());
  for (size_t i = 0; i < results.size(); ++i) {
    const ElementType wanted = host_type(model_->outputs()[i].type);
    if (results[i].type() != wanted) results[i] = results[i].convert(wanted);
  }
  return results;
}

// Converts pictures into their inputs, as evaluate_preprocess() does.
void HostRequest::fill_pictures() {
  std::map<size_t, Tensor> floats;  // by index of the input
  for (const auto& [where, picture] : pictures_) {
    const auto& [index, image] = where;
    const Port& port = model_->network_inputs()[index];
    int number = 0;
    const TensorDesc to = image_in(TensorDesc::row_major(ElementType::f32, port.shape),
                                   picture.transform.nhwc, static_cast<int64_t>(image), number);
    const size_t channels_axis = picture.transform.nhwc ? 3 : 1,
                 height_axis = channels_axis == 3 ? 1 : 2;
    const Tensor one = evaluate_preprocess(
        picture.frame, picture.transform, static_cast<int>(to.shape[height_axis + 1]),
        static_cast<int>(to.shape[height_axis]), static_cast<int>(to.shape[channels_axis]));
    // Copies the input's values into memory that nothing else holds, so that they can be changed.
    if (!floats.contains(index)) {
      Tensor all = Tensor::allocate(ElementType::f32, port.shape);
      const Tensor before = inputs_[index].convert(ElementType::f32);
      std::memcpy(all.raw_mutable(), before.raw(), all.bytes());
      floats[index] = std::move(all);
    }
    TensorDesc place = to;
    place.shape[0] = 1;
    place.offset += number * to.strides[0];
    scatter_to(one, place, floats[index].raw_mutable());
  }
  for (auto& [index, values] : floats) {
    const ElementType type = inputs_[index].type();
    if (type != ElementType::f32) {  // rounds as the device's storage does
      float* all = values.mutable_data<float>();
      const float low = type == ElementType::i8 ? -128.f : 0.f,
                  high = type == ElementType::i8 ? 127.f : 255.f;
      for (int64_t i = 0; i < values.elements(); ++i) {
        all[i] = std::nearbyint(all[i]);
        if (type != ElementType::i32) all[i] = std::clamp(all[i], low, high);
      }
    }
    inputs_[index] = type == ElementType::f32 ? std::move(values) : values.convert(type);
  }
  pictures_.clear();
}

bool HostRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  if (!running_) return true;
  std::unique_lock lock(mutex_);
  const auto over = [this] { return over_; };
  if (timeout) {
    if (!changed_.wait_for(lock, *timeout, over)) return false;
  } else {
    changed_.wait(lock, over);
  }
  lock.unlock();
  running_ = false;
  for (const auto& [where, picture] : std::exchange(pictures_, {}))
    lost_.add(where, picture.transform.nhwc);
  if (error_) std::rethrow_exception(error_);
  model_->count();
  return true;
}

const Port& HostRequest::described_state(size_t index) const {
  check_idle();
  if (index >= states_.size())
    throw Error(ErrorCode::bad_argument, "there is no state " + std::to_string(index) +
                                             "; the model has " + std::to_string(states_.size()));
  return model_->model().states()[index];
}

Tensor HostRequest::initial_state(size_t index) const {
  const Port& port = model_->model().states()[index];
  const auto& all = model_->model().graph().initial_states;
  const auto found = all.find(model_->states()[index].name);
  return found != all.end() ? found->second.convert(host_type(port.type))
                            : Tensor::allocate(host_type(port.type), port.shape);
}

void HostRequest::reset_states() {
  check_idle();
  for (Tensor& state : states_) state = {};
}

Tensor HostRequest::state(size_t index) const {
  const Port& port = described_state(index);
  if (!states_[index].empty()) return states_[index].convert(host_type(port.type));
  if (model_->states()[index].is_new)
    throw Error(ErrorCode::bad_argument, "state " + std::to_string(index) + " (\"" + port.name +
                                             "\") is new: the next inference computes its value");
  return initial_state(index);
}

void HostRequest::set_state(size_t index, const Tensor& value) {
  const Port& port = described_state(index);
  if (value.shape() != port.shape)
    throw Error(ErrorCode::bad_argument, "state " + std::to_string(index) + " (\"" + port.name +
                                             "\") is " + to_string(port.shape) +
                                             ", the value given is " + to_string(value.shape()));
  // Copies, because a tensor of the same type would share the application's memory.
  states_[index] = Tensor::allocate(host_type(port.type), port.shape);
  scatter_to(value, TensorDesc::row_major(host_type(port.type), port.shape),
             states_[index].raw_mutable());
}

const Tensor& HostRequest::output(size_t index) const {
  if (index >= outputs_.size())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             " before an inference has finished");
  return outputs_[index];
}

}  // namespace clinfer::host
