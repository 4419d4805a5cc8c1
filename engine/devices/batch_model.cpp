// Forms batches of requests.
#include "engine/devices/batch_model.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/default_floats.h"

namespace clinfer {

namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(20);

// Refuses a tensor of one image that `all` is not a batch of.
void check(const char* what, const Port& one, const Port& all, int64_t images) {
  const bool divides = !one.shape.empty() && one.shape[0] == 1 &&
                       one.shape.size() == all.shape.size() && all.shape[0] == images &&
                       std::equal(one.shape.begin() + 1, one.shape.end(), all.shape.begin() + 1);
  if (!divides)
    throw Error(ErrorCode::unsupported,
                std::string("device=BATCH: ") + what + " \"" + one.name + "\" " +
                    to_string(one.shape) + ", " + to_string(all.shape) + " in a batch of " +
                    std::to_string(images) +
                    ", cannot be divided by image; compile the model for a batch instead (the "
                    "device without BATCH, and Config::batch or --batch), whose outputs are those "
                    "of all images");
}

constexpr int64_t kRow = 7;  // numbers in a row of DetectionOutput, of which the first is the image

// Returns whether DetectionOutput makes output `index`: rows [1,1,N,7] of all images together.
bool lists_rows(const Model& model, size_t index, const Port& all, int64_t images) {
  const Shape& one = model.outputs()[index].shape;
  return model.output_op(index) == "DetectionOutput" && one.size() == 4 && one[3] == kRow &&
         all.shape == Shape{1, 1, one[2] * images, kRow};
}

// Returns the rows of one image, of those of all, as DetectionOutput lists them for that image
// alone: image 0, and a row that begins with -1 after the last one if there is room.
Tensor rows_of(const Tensor& all, const Shape& one, size_t image) {
  const Tensor listed = all.type() == ElementType::f32 ? all : all.convert(ElementType::f32);
  Tensor rows = Tensor::allocate(ElementType::f32, one);
  float* to = rows.mutable_data<float>();
  float* const end = to + rows.elements();
  std::fill(to, end, 0.0f);
  const float* from = listed.data<float>();
  for (int64_t n = 0; n < listed.shape()[2] && *from >= 0 && to != end; ++n, from += kRow) {
    if (*from != static_cast<float>(image)) continue;
    std::copy_n(from, kRow, to);
    *to = 0;
    to += kRow;
  }
  if (to != end) *to = -1;
  return rows;
}

}  // namespace

BatchModel::BatchModel(std::shared_ptr<const Model> model, const std::string& device,
                       std::shared_ptr<CompiledModel> whole, size_t images, const Config& config,
                       std::vector<std::string> warnings)
    : JoinedModel(std::move(model), device, {std::move(whole)}, config, std::move(warnings)),
      images_(images),
      timeout_(config.auto_batch_timeout) {
  const auto batch = static_cast<int64_t>(images);
  for (size_t i = 0; i < inputs().size(); ++i)
    check("input", inputs()[i], this->whole().inputs()[i], batch);
  for (size_t i = 0; i < outputs().size(); ++i) {
    const Port& all = this->whole().outputs()[i];
    by_rows_.push_back(lists_rows(this->model(), i, all, batch));
    if (!by_rows_[i]) check("output", outputs()[i], all, batch);
  }
  for (unsigned n = 0; n < this->whole().optimal_requests(); ++n) {
    requests_.push_back(this->whole().create_request());
    free_.push_back(requests_.back().get());
  }
}

std::unique_ptr<InferRequest> BatchModel::create_request() {
  return std::make_unique<BatchRequest>(shared_from_this());
}

void BatchModel::join(BatchRequest& request) {
  std::set<size_t> pictures;
  for (const auto& [index, frame] : request.frames_) pictures.insert(index);
  std::unique_lock lock(mutex_);
  // One input of an inference is given either as frames or as tensors.
  if (forming_ != nullptr && forming_->pictures != pictures) close_forming();
  if (forming_ == nullptr) {
    forming_ = std::make_shared<Group>();
    forming_->pictures = std::move(pictures);
    forming_->due = Clock::now() + timeout_;
  }
  const std::shared_ptr<Group> group = forming_;
  request.place_ = group->members.size();
  request.cancelled_ = false;
  group->members.push_back(&request);
  request.group_ = group;
  if (group->members.size() < images_) return;
  close_forming();
  launch_group(lock, *group);
}

// Needs the lock.
void BatchModel::close_forming() {
  forming_->full = true;
  forming_->changed.notify_all();
  pending_.push_back(std::exchange(forming_, nullptr));
}

bool BatchModel::launch_group(std::unique_lock<std::mutex>& lock, Group& group) {
  if (group.served || free_.empty()) return false;
  if (forming_.get() == &group) close_forming();
  group.served = true;
  std::erase_if(pending_, [&](const auto& other) { return other.get() == &group; });
  group.request = free_.back();
  free_.pop_back();
  std::exception_ptr error;
  lock.unlock();
  try {
    fill(*group.request, group);
    group.request->start(group.members.size());
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  group.served = false;
  if (error)
    end(group, error);
  else
    group.state = Group::State::launched;
  group.changed.notify_all();
  return true;
}

// Sets what the members have set. They change nothing while they are in flight.
void BatchModel::fill(InferRequest& request, const Group& group) const {
  for (size_t i = 0; i < inputs().size(); ++i) {
    if (group.pictures.contains(i)) {
      for (size_t n = 0; n < group.members.size(); ++n) {
        const BatchRequest::SetFrame& set = group.members[n]->frames_.at(i);
        request.set_frame(i, set.frame, set.transform, n, set.memory);
      }
      continue;
    }
    const std::span<std::byte> all = request.input_memory(i);
    const size_t one = all.size() / images_;
    for (size_t n = 0; n < group.members.size(); ++n)
      std::memcpy(all.data() + n * one, group.members[n]->values_[i].raw(), one);
  }
}

// Needs the lock.
void BatchModel::end(Group& group, std::exception_ptr error) {
  group.error = std::move(error);
  if (!group.error)
    for (size_t i = 0; i < outputs().size(); ++i) group.outputs.push_back(group.request->output(i));
  free_.push_back(group.request);
  group.request = nullptr;
  group.state = Group::State::over;
  group.changed.notify_all();
  for (const auto& next : pending_) next->changed.notify_all();
}

bool BatchModel::wait(BatchRequest& request, std::optional<Clock::time_point> until) {
  const std::shared_ptr<Group> group = request.group_;
  std::unique_lock lock(mutex_);
  while (group->state != Group::State::over) {
    if (request.cancelled_ && leave(request)) return true;
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + kAskAgain;
    if (until) next = std::min(next, *until);
    if (group->state == Group::State::forming) {
      const bool ready = group->full || now >= group->due;
      if (ready && launch_group(lock, *group)) continue;
      if (!ready) next = std::min(next, group->due);
    } else if (!group->served) {
      // This thread waits for the device on behalf of all.
      group->served = true;
      InferRequest* const shared = group->request;
      bool over = false;
      std::exception_ptr error;
      lock.unlock();
      try {
        over = shared->wait(std::chrono::ceil<std::chrono::milliseconds>(next - now));
      } catch (const NoAnswer&) {
        lock.lock();
        group->served = false;
        throw;  // the inference is still in flight
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      group->served = false;
      if (over || error) end(*group, error);
      if (until && Clock::now() >= *until) return group->state == Group::State::over;
      continue;
    }
    if (until && now >= *until) return false;
    group->changed.wait_until(lock, next);
  }
  return true;
}

bool BatchModel::leave(BatchRequest& request) {
  Group& group = *request.group_;
  if (group.state != Group::State::forming || group.served) return false;
  // Those after it move up.
  group.members.erase(group.members.begin() + static_cast<std::ptrdiff_t>(request.place_));
  for (size_t n = request.place_; n < group.members.size(); ++n) group.members[n]->place_ = n;
  if (!group.members.empty()) return true;
  if (forming_.get() == &group) forming_.reset();
  std::erase_if(pending_, [&](const auto& other) { return other.get() == &group; });
  return true;
}

// ---- requests ----------------------------------------------------------------------------------

BatchRequest::BatchRequest(std::shared_ptr<BatchModel> model) : model_(std::move(model)) {
  for (const Port& input : model_->inputs())
    values_.push_back(Tensor::allocate(input.type, input.shape));
}

BatchRequest::~BatchRequest() {
  if (group_ == nullptr) return;
  cancel();
  try {
    model_->wait(*this, std::nullopt);
  } catch (const std::exception&) {
    // The device failed, so nothing is in flight any more.
  }
}

const Port& BatchRequest::port(size_t index) const {
  if (group_ != nullptr)
    throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  const auto& inputs = model_->inputs();
  if (index >= inputs.size())
    throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                             "; the model has " + std::to_string(inputs.size()));
  return inputs[index];
}

void BatchRequest::set_input(size_t index, const Tensor& value) {
  const DefaultFloats floats;
  const Port& input = port(index);
  if (value.shape() != input.shape)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " (\"" + input.name +
                                             "\") is " + to_string(input.shape) +
                                             ", the value given is " + to_string(value.shape()));
  scatter_to(value, TensorDesc::row_major(input.type, input.shape), values_[index].raw_mutable());
  frames_.erase(index);
}

std::span<std::byte> BatchRequest::input_memory(size_t index) {
  port(index);
  frames_.erase(index);
  return {static_cast<std::byte*>(values_[index].raw_mutable()), values_[index].bytes()};
}

Placement BatchRequest::set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                                  size_t image, const FrameMemory* memory) {
  const Shape& shape = port(index).shape;
  if (image != 0 || shape.size() != 4)
    throw Error(ErrorCode::bad_argument, "input " + std::to_string(index) + " " + to_string(shape) +
                                             ": there is no image " + std::to_string(image) +
                                             " in it");
  frames_[index] = {frame, transform, memory};
  read_frames_.erase(index);
  const size_t width = shape.size() - (transform.nhwc ? 2 : 1);
  return placement_of(frame, transform, static_cast<int>(shape[width]),
                      static_cast<int>(shape[width - 1]));
}

Placement BatchRequest::set_surface(size_t, const std::shared_ptr<ImportedSurface>&, const Frame&,
                                    const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, "device=BATCH reads frames from system memory");
}

Placement BatchRequest::set_memory(size_t, const ImportedPlanes&, const Frame&,
                                   const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, "device=BATCH reads frames from system memory");
}

void BatchRequest::start(size_t) {
  const DefaultFloats floats;
  if (group_ != nullptr)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  for (const auto& [index, frame] : frames_)
    if (!read_frames_.insert(index).second)
      throw Error(ErrorCode::bad_argument,
                  "input " + std::to_string(index) +
                      ": with device=BATCH a frame is set for each inference anew");
  outputs_.clear();
  model_->join(*this);
}

bool BatchRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  const DefaultFloats floats;
  if (group_ == nullptr) return true;
  std::optional<BatchModel::Clock::time_point> until;
  if (timeout) until = BatchModel::Clock::now() + *timeout;
  const std::shared_ptr<BatchModel::Group> group = group_;
  if (!model_->wait(*this, until)) return false;
  bool cancelled = false;
  {
    const std::lock_guard lock(model_->mutex_);
    group_.reset();
    cancelled = cancelled_;
  }
  if (cancelled) throw Error(ErrorCode::cancelled, "the inference was cancelled");
  if (group->error) std::rethrow_exception(group->error);
  for (size_t i = 0; i < group->outputs.size(); ++i) {
    const Tensor& all = group->outputs[i];
    if (model_->by_rows_[i]) {
      outputs_.push_back(rows_of(all, model_->outputs()[i].shape, place_));
      continue;
    }
    Shape shape = all.shape();
    shape[0] = 1;
    const size_t bytes = static_cast<size_t>(count(shape)) * size_of(all.type());
    outputs_.push_back(Tensor::view(all.type(), std::move(shape),
                                    static_cast<const std::byte*>(all.raw()) + place_ * bytes,
                                    std::make_shared<const Tensor>(all)));
  }
  return true;
}

void BatchRequest::cancel() {
  const std::lock_guard lock(model_->mutex_);
  cancelled_ = true;
  if (group_ != nullptr) group_->changed.notify_all();
}

const Tensor& BatchRequest::output(size_t index) const {
  if (index >= outputs_.size())
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             " before an inference has finished");
  return outputs_[index];
}

}  // namespace clinfer
