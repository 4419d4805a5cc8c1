// Runs the parts of a network on their devices, independent ones at the same time.
#include "engine/devices/hetero_model.h"

#include <algorithm>
#include <set>

namespace clinfer {

HeteroModel::HeteroModel(std::shared_ptr<const Model> model, const std::string& list,
                         std::vector<std::shared_ptr<CompiledModel>> parts, Partition partition,
                         std::vector<Port> inputs, std::vector<Port> outputs, const Config& config,
                         std::vector<std::string> warnings)
    : JoinedModel(std::move(model), list, std::move(parts), config, std::move(warnings)),
      partition_(std::move(partition)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {}

unsigned HeteroModel::streams() const {
  unsigned most = 1;
  for (const auto& part : parts()) most = std::max(most, part->streams());
  return most;
}

unsigned HeteroModel::optimal_requests() const {
  unsigned most = 1;
  std::set<std::string> devices;
  for (const auto& part : parts()) {
    most = std::max(most, part->optimal_requests());
    devices.insert(part->device().id);
  }
  return most * static_cast<unsigned>(devices.size());
}

size_t HeteroModel::kernel_count() const {
  size_t count = 0;
  for (const auto& part : parts()) count += part->kernel_count();
  return count;
}

std::unique_ptr<InferRequest> HeteroModel::create_request() {
  return std::make_unique<HeteroRequest>(shared_from_this());
}

bool HeteroModel::wants_frame_memory() const {
  return std::any_of(parts().begin(), parts().end(),
                     [](const auto& part) { return part->wants_frame_memory(); });
}

std::shared_ptr<FrameMemory> HeteroModel::allocate_frame_memory(size_t bytes) {
  for (const auto& part : parts())
    if (part->wants_frame_memory()) return part->allocate_frame_memory(bytes);
  return parts()[0]->allocate_frame_memory(bytes);
}

bool HeteroModel::fetches_from(const FrameMemory& memory) const {
  return std::any_of(parts().begin(), parts().end(),
                     [&](const auto& part) { return part->fetches_from(memory); });
}

std::vector<StepProfile> HeteroModel::profile() const {
  std::vector<StepProfile> all;
  for (size_t p = 0; p < parts().size(); ++p)
    for (StepProfile& step : parts()[p]->profile()) {
      step.layer = "subgraph" + std::to_string(p) + ": " + step.layer;
      all.push_back(std::move(step));
    }
  return all;
}

// ---- requests ----------------------------------------------------------------------------------

HeteroRequest::HeteroRequest(std::shared_ptr<HeteroModel> model)
    : model_(std::move(model)), states_(model_->part_count(), State::done) {
  for (size_t p = 0; p < model_->part_count(); ++p)
    requests_.push_back(model_->part(p).create_request());
}

template <typename F>
void HeteroRequest::for_readers(size_t index, const F& f) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  if (index >= model_->inputs().size())
    throw Error(ErrorCode::bad_argument, "there is no input " + std::to_string(index) +
                                             "; the model has " +
                                             std::to_string(model_->inputs().size()));
  const std::vector<Subgraph>& parts = model_->partition().parts;
  for (size_t p = 0; p < parts.size(); ++p)
    for (size_t i = 0; i < parts[p].inputs.size(); ++i)
      if (parts[p].inputs[i].of_network && parts[p].inputs[i].index == index) f(p, i);
}

std::span<std::byte> HeteroRequest::input_memory(size_t index) {
  if (running_) throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  return memories_.of(index, port_of(model_->inputs(), index));
}

void HeteroRequest::set_input(size_t index, const Tensor& value) {
  memories_.forget(index);
  for_readers(index, [&](size_t part, size_t input) { requests_[part]->set_input(input, value); });
}

Placement HeteroRequest::set_frame(size_t index, const Frame& frame,
                                   const FrameTransform& transform, size_t image,
                                   const FrameMemory* memory) {
  memories_.hand_over(index, *this);
  std::optional<Placement> placement;
  for_readers(index, [&](size_t part, size_t input) {
    const bool fetches = memory != nullptr && model_->part(part).fetches_from(*memory);
    placement =
        requests_[part]->set_frame(input, frame, transform, image, fetches ? memory : nullptr);
  });
  if (!placement)
    throw Error(ErrorCode::bad_argument,
                "no layer reads input " + std::to_string(index) + ", so it takes no frames");
  return *placement;
}

Placement HeteroRequest::set_surface(size_t, const std::shared_ptr<ImportedSurface>&, const Frame&,
                                     const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, model_->import_problem(MemoryHandle::dmabuf));
}

Placement HeteroRequest::set_memory(size_t, const ImportedPlanes&, const Frame&,
                                    const FrameTransform&, size_t) {
  throw Error(ErrorCode::unsupported, model_->import_problem(MemoryHandle::dmabuf));
}

void HeteroRequest::start(size_t) {
  if (running_)
    throw Error(ErrorCode::bad_argument, "the request is in flight already; wait() first");
  memories_.set(*this);
  cancelled_ = false;
  states_.assign(states_.size(), State::waiting);
  running_ = true;
  try {
    start_ready_parts();
  } catch (...) {
    end_all();
    throw;
  }
}

void HeteroRequest::start_ready_parts() {
  const std::vector<Subgraph>& parts = model_->partition().parts;
  for (size_t p = 0; p < parts.size(); ++p) {
    const bool ready =
        states_[p] == State::waiting &&
        std::all_of(parts[p].inputs.begin(), parts[p].inputs.end(), [&](const auto& source) {
          return source.of_network || states_[source.part] == State::done;
        });
    if (!ready) continue;
    requests_[p]->start();
    states_[p] = State::running;
  }
}

// Passes a finished part's outputs to the parts that read them.
void HeteroRequest::hand_on(size_t part) {
  const std::vector<Subgraph>& parts = model_->partition().parts;
  for (size_t p = part + 1; p < parts.size(); ++p)
    for (size_t i = 0; i < parts[p].inputs.size(); ++i) {
      const Subgraph::Source& source = parts[p].inputs[i];
      if (!source.of_network && source.part == part)
        requests_[p]->set_input(i, requests_[part]->output(source.index));
    }
}

bool HeteroRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  // Also waits for inferences that were given up and may still be in flight.
  if (!running_)
    return std::all_of(requests_.begin(), requests_.end(),
                       [&](const auto& request) { return request->wait(timeout); });
  size_t part = 0;
  try {
    for (;;) {
      const auto running = std::find(states_.begin(), states_.end(), State::running);
      if (running == states_.end()) break;
      part = static_cast<size_t>(running - states_.begin());
      std::optional<std::chrono::milliseconds> left;
      if (timeout)
        left = std::max(
            std::chrono::milliseconds(0),
            *timeout - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun));
      if (!requests_[part]->wait(left)) return false;
      states_[part] = State::done;
      if (cancelled_) throw Error(ErrorCode::cancelled, "the inference was cancelled");
      hand_on(part);
      start_ready_parts();
    }
  } catch (...) {
    states_[part] = State::done;  // keeps it from being waited for again
    end_all();
    throw;
  }
  running_ = false;
  return true;
}

// Ends an inference that failed. Waits for the parts that still run, because they read the frames,
// unless their device does not answer.
void HeteroRequest::end_all() noexcept {
  running_ = false;
  for (size_t p = 0; p < requests_.size(); ++p) {
    if (states_[p] != State::running) continue;
    requests_[p]->cancel();
    try {
      requests_[p]->wait();
    } catch (const std::exception&) {
      // The first failure was thrown already.
    }
  }
}

void HeteroRequest::cancel() {
  cancelled_ = true;
  for (const auto& request : requests_) request->cancel();
}

const Tensor& HeteroRequest::output(size_t index) const {
  if (index >= model_->partition().outputs.size() || running_)
    throw Error(ErrorCode::bad_argument, "there is no output " + std::to_string(index) +
                                             " before an inference has finished");
  const Partition::Output& where = model_->partition().outputs[index];
  return requests_[where.part]->output(where.index);
}

}  // namespace clinfer
