// A model of HETERO: parts of a network on several devices, each of them a compiled model. Tensors
// go from one part to the next through host memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/devices/input_memories.h"
#include "engine/devices/joined_model.h"
#include "engine/devices/partition.h"

namespace clinfer {

class HeteroModel final : public JoinedModel, public std::enable_shared_from_this<HeteroModel> {
 public:
  // `parts`: compiled, in the order of `partition`. `inputs`, `outputs`: those of the whole
  // network.
  HeteroModel(std::shared_ptr<const Model> model, const std::string& list,
              std::vector<std::shared_ptr<CompiledModel>> parts, Partition partition,
              std::vector<Port> inputs, std::vector<Port> outputs, const Config& config,
              std::vector<std::string> warnings);

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  unsigned streams() const override;
  unsigned optimal_requests() const override;  // enough to keep all parts busy
  size_t kernel_count() const override;
  std::unique_ptr<InferRequest> create_request() override;
  bool wants_thread_per_request() const override { return true; }
  bool wants_frame_memory() const override;
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override;
  bool fetches_from(const FrameMemory& memory) const override;
  std::vector<StepProfile> profile() const override;

  // The calls below are made by requests.
  size_t part_count() const { return parts().size(); }
  CompiledModel& part(size_t index) const { return *parts()[index]; }
  const Partition& partition() const { return partition_; }

 private:
  const Partition partition_;  // graphs removed
  const std::vector<Port> inputs_, outputs_;
};

// A request of the whole network. wait() hands on what a part has computed, and starts the parts
// that have all their inputs.
class HeteroRequest final : public InferRequest {
 public:
  explicit HeteroRequest(std::shared_ptr<HeteroModel> model);

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
  const Tensor& output(size_t index) const override;

 private:
  enum class State { waiting, running, done };
  // Calls f(part, input of the part) for each part that reads an input of the network.
  template <typename F>
  void for_readers(size_t index, const F& f);
  void start_ready_parts();
  void hand_on(size_t part);
  void end_all() noexcept;

  const std::shared_ptr<HeteroModel> model_;
  std::vector<std::unique_ptr<InferRequest>> requests_;  // by part
  std::vector<State> states_;                            // by part
  InputMemories memories_;
  bool running_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace clinfer
