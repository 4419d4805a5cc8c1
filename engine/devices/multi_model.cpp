// Spreads requests over devices, and moves them to another device when one fails.
#include "engine/devices/multi_model.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/log.h"
#include "kernels/base/no_answer.h"

namespace clinfer {

namespace {

// Returns whether the error is a failure of a device or its driver, and not of the caller.
bool is_failure_of_device(const Error& error) {
  return error.code() == ErrorCode::device_failed || error.code() == ErrorCode::out_of_memory ||
         error.code() == ErrorCode::no_device;
}

void check_same(const std::vector<Port>& a, const std::vector<Port>& b, const std::string& list) {
  const bool same =
      std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Port& one, const Port& other) {
        return one.name == other.name && one.type == other.type && one.shape == other.shape;
      });
  if (!same)
    throw Error(ErrorCode::bad_argument,
                "device=" + list +
                    ": settings of single devices give the model other inputs or "
                    "outputs there; give all devices the same");
}

}  // namespace

MultiModel::MultiModel(std::shared_ptr<const Model> model, const std::string& list,
                       std::vector<std::shared_ptr<CompiledModel>> models, const Config& config,
                       std::vector<std::string> warnings)
    : JoinedModel(std::move(model), list, std::move(models), config, std::move(warnings)),
      lost_(parts().size()) {
  unsigned most = 0;
  for (const auto& part : parts()) {
    check_same(parts()[0]->inputs(), part->inputs(), list);
    check_same(parts()[0]->outputs(), part->outputs(), list);
    most = std::max(most, part->streams());
  }
  // Goes stream by stream, so that a few requests are spread over many devices.
  for (unsigned stream = 0; stream < most; ++stream)
    for (size_t device = 0; device < parts().size(); ++device)
      if (stream < parts()[device]->streams()) places_.push_back(device);
}

unsigned MultiModel::optimal_requests() const {
  unsigned count = 0;
  for (const auto& part : parts()) count += part->optimal_requests();
  return count;
}

std::unique_ptr<InferRequest> MultiModel::create_request() {
  size_t device = places_[next_request_++ % places_.size()];
  if (is_lost(device)) device = next_device().value_or(device);
  return std::make_unique<MultiRequest>(shared_from_this(), device);
}

bool MultiModel::wants_frame_memory() const {
  return std::any_of(parts().begin(), parts().end(),
                     [](const auto& part) { return part->wants_frame_memory(); });
}

std::shared_ptr<FrameMemory> MultiModel::allocate_frame_memory(size_t bytes) {
  for (size_t device = 0; device < parts().size(); ++device)
    if (!is_lost(device) && parts()[device]->wants_frame_memory())
      return parts()[device]->allocate_frame_memory(bytes);
  return parts()[0]->allocate_frame_memory(bytes);
}

bool MultiModel::fetches_from(const FrameMemory& memory) const {
  return std::any_of(parts().begin(), parts().end(),
                     [&](const auto& part) { return part->fetches_from(memory); });
}

std::vector<StepProfile> MultiModel::profile() const {
  std::vector<StepProfile> all;
  for (const auto& part : parts())
    for (StepProfile& step : part->profile()) {
      step.layer = part->device().id + ": " + step.layer;
      all.push_back(std::move(step));
    }
  return all;
}

void MultiModel::lose(size_t device, const std::string& why) {
  if (lost_[device].exchange(true)) return;
  const DeviceInfo& info = parts()[device]->device();
  const std::string problem =
      info.id + " (" + info.name + ") is not used any more, the other devices go on: " + why;
  log(LogArea::device, LogLevel::warning, [&] { return problem; });
  add_problem(problem);
}

std::optional<size_t> MultiModel::next_device() {
  for (size_t i = 0; i < parts().size(); ++i) {
    const size_t device = next_device_++ % parts().size();
    if (!is_lost(device)) return device;
  }
  return std::nullopt;
}

// ---- requests ----------------------------------------------------------------------------------

MultiRequest::MultiRequest(std::shared_ptr<MultiModel> model, size_t device)
    : model_(std::move(model)),
      device_(device),
      inner_(model_->on_device(device).create_request()) {}

template <typename F>
auto MultiRequest::on_a_device(const F& f) {
  for (;;) {
    try {
      return f();
    } catch (const Error& error) {
      const bool answers = dynamic_cast<const NoAnswer*>(&error) == nullptr;
      if (!is_failure_of_device(error) || cancelled_ || !move_on(error.what(), answers)) throw;
    }
  }
}

void MultiRequest::leave_lost_device() {
  if (model_->is_lost(device_) && !move_on("it failed", true))
    throw Error(ErrorCode::device_failed,
                "device=" + model_->device().id + ": every device of the list has failed");
}

// Moves the inputs that were set, and the inference in flight, to another device. Returns false if
// none is left.
bool MultiRequest::move_on(std::string why, bool answers) {
  size_t failed = device_;
  for (bool first = true;; first = false) {
    model_->lose(failed, why);
    const std::optional<size_t> next = model_->next_device();
    if (!next && first) return false;
    if (!next && !answers) throw NoAnswer(why);
    if (!next) throw Error(ErrorCode::device_failed, why);
    try {
      auto request = model_->on_device(*next).create_request();
      fill(*request, model_->on_device(*next));
      for (const auto& [where, nhwc] : std::exchange(on_device_, {})) lost_.add(where, nhwc);
      if (running_) check_images();
      if (running_) request->start(images_);
      replace(std::move(request), *next, answers);
      return true;
    } catch (const Error& error) {
      if (!is_failure_of_device(error)) throw;
      why = error.what();
      failed = *next;
    }
  }
}

// `answers`: the device that is left has no inference of this request in flight.
void MultiRequest::replace(std::unique_ptr<InferRequest> request, size_t device, bool answers) {
  device_ = device;
  // Destroyed after the lock is released, because its destructor may wait.
  std::unique_ptr<InferRequest> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(inner_, std::move(request));
    if (cancelled_) inner_->cancel();
  }
  if (answers) return;
  keeps_frames_ = keeps_frames_ || !frames_.empty();
  given_up_.push_back(std::move(before));
}

void MultiRequest::fill(InferRequest& request, CompiledModel& model) const {
  for (const auto& [index, value] : inputs_) request.set_input(index, value);
  for (const auto& [where, set] : frames_) {
    const bool fetches = set.memory != nullptr && model.fetches_from(*set.memory);
    request.set_frame(where.first, set.frame, set.transform, where.second,
                      fetches ? set.memory : nullptr);
  }
}

void MultiRequest::check_images() const {
  lost_.check(model_->inputs(), images_, " was on a device that has failed since");
}

std::span<std::byte> MultiRequest::input_memory(size_t index) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  return memories_.of(index, port_of(model_->inputs(), index));
}

void MultiRequest::set_input(size_t index, const Tensor& value) {
  memories_.forget(index);
  if (!running_) leave_lost_device();
  on_a_device([&] { inner_->set_input(index, value); });
  Tensor& kept = inputs_[index];
  if (kept.empty() || kept.type() != value.type() || kept.shape() != value.shape())
    kept = Tensor::allocate(value.type(), value.shape());
  if (value.bytes() != 0) std::memcpy(kept.raw_mutable(), value.raw(), value.bytes());
  const auto of_input = [&](const auto& image) { return image.first.first == index; };
  std::erase_if(frames_, of_input);
  std::erase_if(on_device_, of_input);
  lost_.found(index);
}

Placement MultiRequest::set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                                  size_t image, const FrameMemory* memory) {
  memories_.hand_over(index, *this);
  const Placement placement = on_a_device([&] {
    const bool fetches = memory != nullptr && model_->on_device(device_).fetches_from(*memory);
    return inner_->set_frame(index, frame, transform, image, fetches ? memory : nullptr);
  });
  frames_[{index, image}] = {frame, transform, memory};
  on_device_.erase({index, image});
  lost_.found({index, image});
  return placement;
}

Placement MultiRequest::set_surface(size_t, const std::shared_ptr<ImportedSurface>&, const Frame&,
                                    const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, model_->import_problem(MemoryHandle::dmabuf));
}

Placement MultiRequest::set_memory(size_t, const ImportedPlanes&, const Frame&,
                                   const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, model_->import_problem(MemoryHandle::dmabuf));
}

void MultiRequest::start(size_t images) {
  if (running_)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  memories_.set(*this);
  cancelled_ = keeps_frames_ = false;
  images_ = images;
  try {
    leave_lost_device();
    on_a_device([&] {
      check_images();
      inner_->start(images_);
    });
  } catch (...) {
    frames_.clear();
    throw;
  }
  running_ = true;
}

bool MultiRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  if (!running_) return inner_->wait(timeout);  // an inference that got no answer may be in flight
  try {
    if (!on_a_device([&] { return inner_->wait(timeout); })) return false;
  } catch (...) {
    running_ = false;
    frames_.clear();
    throw;
  }
  running_ = false;
  for (const auto& [where, set] : frames_) on_device_[where] = set.transform.nhwc;
  frames_.clear();
  return true;
}

void MultiRequest::cancel() {
  cancelled_ = true;
  const std::lock_guard lock(mutex_);
  inner_->cancel();
}

}  // namespace clinfer
