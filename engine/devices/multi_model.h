// A model of MULTI: each request belongs to a stream of one of several devices. Applications take
// the next idle request, and so the device that is free.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/input_memories.h"
#include "engine/devices/joined_model.h"
#include "engine/runtime/frames/lost_images.h"

namespace clinfer {

class MultiModel final : public JoinedModel, public std::enable_shared_from_this<MultiModel> {
 public:
  // `models`: one for each device. Throws Error{bad_argument} if their inputs or outputs differ.
  MultiModel(std::shared_ptr<const Model> model, const std::string& list,
             std::vector<std::shared_ptr<CompiledModel>> models, const Config& config,
             std::vector<std::string> warnings);

  const std::vector<Port>& inputs() const override { return parts()[0]->inputs(); }
  const std::vector<Port>& outputs() const override { return parts()[0]->outputs(); }
  unsigned streams() const override { return static_cast<unsigned>(places_.size()); }
  unsigned optimal_requests() const override;
  size_t kernel_count() const override { return parts()[0]->kernel_count(); }
  std::unique_ptr<InferRequest> create_request() override;
  bool wants_frame_memory() const override;
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override;
  bool fetches_from(const FrameMemory& memory) const override;
  std::vector<StepProfile> profile() const override;

  // Requests call these, on any thread.
  CompiledModel& on_device(size_t device) const { return *parts()[device]; }
  bool is_lost(size_t device) const { return lost_[device]; }
  // Starts no more inferences on that device, and reports this once.
  void lose(size_t device, const std::string& why);
  // Returns the working devices in turn; nothing if none is left.
  std::optional<size_t> next_device();

 private:
  std::vector<size_t> places_;  // the device of each stream
  std::atomic<unsigned> next_request_{0}, next_device_{0};
  std::vector<std::atomic<bool>> lost_;  // by device
};

// A request of one device. When that device fails, it repeats the inference on another one.
class MultiRequest final : public InferRequest {
 public:
  MultiRequest(std::shared_ptr<MultiModel> model, size_t device);

  void set_input(size_t index, const Tensor& value) override;
  std::span<std::byte> input_memory(size_t index) override;
  void cancel() override;
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory) override;
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform,
                        size_t image) override;
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image) override;
  void start(size_t images) override;
  bool wait(std::optional<std::chrono::milliseconds> timeout) override;
  bool keeps_frames() const override { return keeps_frames_; }
  const Tensor& output(size_t index) const override { return inner_->output(index); }

 private:
  struct SetFrame {
    Frame frame;
    FrameTransform transform;
    const FrameMemory* memory;
  };
  // Calls f until it succeeds, on another device after each failure of a device. Throws all other
  // errors, and that of the last device.
  template <typename F>
  auto on_a_device(const F& f);
  void leave_lost_device();
  bool move_on(std::string why, bool answers);
  void fill(InferRequest& request, CompiledModel& model) const;
  void check_images() const;
  void replace(std::unique_ptr<InferRequest> request, size_t device, bool answers);

  const std::shared_ptr<MultiModel> model_;
  size_t device_;
  InputMemories memories_;
  // The inputs that were set last, kept for other devices. They own their elements.
  std::map<size_t, Tensor> inputs_;
  std::map<std::pair<size_t, size_t>, SetFrame>
      frames_;  // by input and image, for the next inference
  // FrameTransform::nhwc of images whose frames an earlier inference has read, so that only the
  // device holds them.
  std::map<std::pair<size_t, size_t>, bool> on_device_;
  LostImages lost_;  // images that were lost with a device that failed
  size_t images_ = 0;
  bool running_ = false, keeps_frames_ = false;
  std::atomic<bool> cancelled_{false};
  // Locked to replace inner_, and by other threads that use it, as cancel() does.
  std::mutex mutex_;
  std::unique_ptr<InferRequest> inner_;
  std::vector<std::unique_ptr<InferRequest>> given_up_;  // requests on devices that do not answer
};

}  // namespace clinfer
