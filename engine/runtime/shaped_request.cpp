// Hands each inference to the request for its shapes.
#include "engine/runtime/shaped_request.h"

#include <algorithm>

#include "kernels/base/default_floats.h"

namespace clinfer {

namespace {

std::string text_of(const Shape& open) {
  std::string text;
  for (const int64_t dim : open)
    text += (text.empty() ? "" : ",") + (dim < 0 ? "?" : std::to_string(dim));
  return "[" + text + "]";
}

}  // namespace

ShapedRequest::ShapedRequest(std::unique_ptr<DeviceRequest> compiled, std::vector<Port> ports,
                             std::shared_ptr<ShapePlans> plans)
    : compiled_(std::move(compiled)),
      ports_(std::move(ports)),
      plans_(std::move(plans)),
      active_(compiled_.get()) {
  for (const Port& port : ports_) shapes_.push_back(port.shape);
}

void ShapedRequest::check_idle() const {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
}

void ShapedRequest::check(size_t index, const Shape& shape) const {
  const Port& port = ports_[index];
  const Shape& open = port.open_shape;
  bool fits = shape == port.shape || shape.size() == open.size();
  for (size_t d = 0; fits && shape != port.shape && d < open.size(); ++d)
    fits = open[d] < 0 ? shape[d] > 0 : open[d] == shape[d];
  if (!fits)
    throw Error(ErrorCode::bad_argument,
                "input " + std::to_string(index) + " (\"" + port.name + "\") is " +
                    (open.empty() ? to_string(port.shape) : text_of(open)) +
                    ", the value given is " + to_string(shape));
}

bool ShapedRequest::is_as_compiled() const {
  for (size_t i = 0; i < ports_.size(); ++i)
    if (shapes_[i] != ports_[i].shape) return false;
  return true;
}

void ShapedRequest::set_input(size_t index, const Tensor& value) {
  const DefaultFloats floats;
  check_idle();
  if (index >= ports_.size()) return compiled_->set_input(index, value);  // throws
  check(index, value.shape());
  Value set{last_number_ + 1, std::nullopt};
  if (value.shape() == ports_[index].shape)
    compiled_->set_input(index, value);
  else
    set.copy = value.convert(value.type());
  values_[index] = std::move(set);
  ++last_number_;
  shapes_[index] = value.shape();
}

void ShapedRequest::took_over(size_t index) {
  values_.erase(index);
  shapes_.at(index) = ports_.at(index).shape;
}

std::span<std::byte> ShapedRequest::input_memory(size_t index) {
  check_idle();
  const auto memory = compiled_->input_memory(index);
  took_over(index);
  return memory;
}

Placement ShapedRequest::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  check_idle();
  const Placement placement = compiled_->set_frame(index, frame, transform, image, memory);
  took_over(index);
  return placement;
}

Placement ShapedRequest::set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                                     const Frame& picture, const FrameTransform& transform,
                                     size_t image) {
  check_idle();
  const Placement placement = compiled_->set_surface(index, surface, picture, transform, image);
  took_over(index);
  return placement;
}

Placement ShapedRequest::set_memory(size_t index, const ImportedPlanes& planes,
                                    const Frame& picture, const FrameTransform& transform,
                                    size_t image) {
  check_idle();
  const Placement placement = compiled_->set_memory(index, planes, picture, transform, image);
  took_over(index);
  return placement;
}

ShapedRequest::Other& ShapedRequest::request_for(const ShapePlans::Shapes& shapes) {
  std::shared_ptr<const ShapePlans::Plan> plan = plans_->find_or_compile(shapes, cancelled_);
  // Requests keep their model, so those whose plan is not kept any more go.
  std::erase_if(
      others_, [&](const Other& other) { return other.plan != plan && !plans_->has(*other.plan); });
  auto found =
      std::ranges::find_if(others_, [&](const Other& other) { return other.plan == plan; });
  if (found == others_.end())
    found = others_.insert(others_.end(), {plan, plan->model->create_request(), {}});
  others_.splice(others_.begin(), others_, found);
  return *found;
}

void ShapedRequest::start(size_t images) {
  const DefaultFloats floats;
  check_idle();
  cancelled_ = false;
  InferRequest* request = compiled_.get();
  {
    // The request that ran last may be dropped below.
    const std::lock_guard lock(mutex_);
    active_ = request;
  }
  if (!is_as_compiled()) {
    for (size_t i = 0; i < ports_.size(); ++i)
      if (!values_.contains(i))
        throw Error(ErrorCode::bad_argument,
                    "input " + std::to_string(i) + " (\"" + ports_[i].name +
                        "\"): an inference of other shapes than the compiled ones needs each "
                        "input by set_input(), which this one was not set by");
    if (compiled_->outputs().are_given())
      throw Error(ErrorCode::bad_argument,
                  "outputs go to memory of the application, which is possible for the compiled "
                  "shapes only");
    Other& other = request_for(shapes_);
    request = other.request.get();
    for (const auto& [index, value] : values_) {
      if (other.given[index] == value.number) continue;
      request->set_input(index, value.copy ? *value.copy : compiled_->inputs().value(index));
      other.given[index] = value.number;
    }
    images = 0;
  }
  request->start(images);
  const std::lock_guard lock(mutex_);
  active_ = request;
  running_ = true;
  if (cancelled_) request->cancel();
}

bool ShapedRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  if (!running_) return true;
  try {
    if (!active_->wait(timeout)) return false;
  } catch (const NoAnswer&) {
    throw;  // it is still in flight
  } catch (...) {
    running_ = false;
    throw;
  }
  running_ = false;
  return true;
}

void ShapedRequest::cancel() {
  cancelled_ = true;
  const std::lock_guard lock(mutex_);
  active_->cancel();
}

const Tensor& ShapedRequest::output(size_t index) const {
  check_idle();
  return active_->output(index);
}

}  // namespace clinfer
