// A model of BATCH: each request has one image, and requests that are started together share an
// inference of several.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/devices/joined_model.h"
#include "kernels/base/no_answer.h"

namespace clinfer {

class BatchRequest;

// Requests that were started wait in a group until it has as many as the batch, or until the first
// one has waited for Config::auto_batch_timeout. No thread of its own: whichever request fills a
// group, or waits for it, launches it and reads its results.
class BatchModel final : public JoinedModel, public std::enable_shared_from_this<BatchModel> {
 public:
  // `whole`: compiled for `images` images, and for parts of them. Throws Error{unsupported} if its
  // inputs or outputs cannot be divided by image.
  BatchModel(std::shared_ptr<const Model> model, const std::string& device,
             std::shared_ptr<CompiledModel> whole, size_t images, const Config& config,
             std::vector<std::string> warnings);

  const std::vector<Port>& inputs() const override { return model().inputs(); }
  const std::vector<Port>& outputs() const override { return model().outputs(); }
  unsigned streams() const override { return whole().streams(); }
  // Enough to fill the batches of all requests of the device.
  unsigned optimal_requests() const override {
    return static_cast<unsigned>(images_) * whole().optimal_requests();
  }
  size_t kernel_count() const override { return whole().kernel_count(); }
  std::unique_ptr<InferRequest> create_request() override;
  bool wants_thread_per_request() const override { return true; }
  bool wants_frame_memory() const override { return whole().wants_frame_memory(); }
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override {
    return whole().allocate_frame_memory(bytes);
  }
  bool fetches_from(const FrameMemory& memory) const override {
    return whole().fetches_from(memory);
  }
  std::vector<StepProfile> profile() const override { return whole().profile(); }

 private:
  friend BatchRequest;
  using Clock = std::chrono::steady_clock;

  // An inference of several requests, from the first one's start to its end.
  struct Group {
    std::vector<BatchRequest*> members;
    std::set<size_t> pictures;  // inputs that the members give as frames
    Clock::time_point due;
    enum class State { forming, launched, over } state = State::forming;
    bool served = false;  // a thread launches it, or waits for the device
    bool full = false;    // takes no further members
    InferRequest* request = nullptr;
    std::exception_ptr error;
    std::vector<Tensor> outputs;  // of all images
    std::condition_variable changed;
  };

  CompiledModel& whole() const { return *parts()[0]; }
  // Puts the request into the group that is being formed; launches that if it is full then.
  void join(BatchRequest& request);
  // Waits until the request's group is over, or the request has left it because it was cancelled.
  // Returns false at `until`.
  bool wait(BatchRequest& request, std::optional<Clock::time_point> until);
  // Takes the request out of a group that is not launched. Returns false if it is. Needs the lock.
  bool leave(BatchRequest& request);
  void close_forming();  // no further request joins it
  // Launches the group, if a request of the device is free. Releases the lock meanwhile.
  bool launch_group(std::unique_lock<std::mutex>& lock, Group& group);
  void end(Group& group, std::exception_ptr error);
  void fill(InferRequest& request, const Group& group) const;

  const size_t images_;
  std::vector<bool> by_rows_;  // by output: rows of DetectionOutput, which name their image
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;  // guards the members below, and all groups
  std::shared_ptr<Group> forming_;
  std::vector<std::shared_ptr<Group>> pending_;          // full, but not launched yet
  std::vector<std::unique_ptr<InferRequest>> requests_;  // of `whole`
  std::vector<InferRequest*> free_;
};

class BatchRequest final : public InferRequest {
 public:
  explicit BatchRequest(std::shared_ptr<BatchModel> model);
  ~BatchRequest() override;

  void set_input(size_t index, const Tensor& value) override;
  std::span<std::byte> input_memory(size_t index) override;
  void cancel() override;
  // The frame is read once the batch is launched; the next inference needs another call.
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory) override;
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform,
                        size_t image) override;
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image) override;
  void start(size_t images) override;
  bool wait(std::optional<std::chrono::milliseconds> timeout) override;
  const Tensor& output(size_t index) const override;

 private:
  friend BatchModel;
  struct SetFrame {
    Frame frame;
    FrameTransform transform;
    const FrameMemory* memory = nullptr;
  };
  const Port& port(size_t index) const;

  const std::shared_ptr<BatchModel> model_;
  std::vector<Tensor> values_;         // by input
  std::map<size_t, SetFrame> frames_;  // by input; take precedence over values
  std::set<size_t> read_frames_;       // inputs whose frame an earlier inference has read
  std::vector<Tensor> outputs_;
  // The model's mutex guards changes of the members below.
  std::shared_ptr<BatchModel::Group> group_;  // of the inference in flight; null: none
  size_t place_ = 0;                          // among the members of the group
  bool cancelled_ = false;
};

}  // namespace clinfer
