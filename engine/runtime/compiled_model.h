// A model compiled for one device, as applications see it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/frames/frame_memory.h"
#include "engine/runtime/network/device_network.h"
#include "engine/runtime/shape_plans.h"

namespace clinfer {

// The outcome of a compilation.
struct CompileReport {
  std::vector<std::string> warnings = {};
  Precision precision = Precision::f32;
  TuningReport tuning = {};
  double load_ms = 0;
  std::string launch = "queue";
  unsigned optimal_requests = 0;  // from the tuning file; 0: two for each stream
};

// A compiled network, together with what applications may ask about it.
class DeviceModel final : public CompiledModel, public std::enable_shared_from_this<DeviceModel> {
 public:
  DeviceModel(std::shared_ptr<const Model> model, std::shared_ptr<const DeviceNetwork> network,
              CompileReport report);
  ~DeviceModel() override;

  const Model& model() const override { return *model_; }
  const DeviceInfo& device() const override { return network_->context->device.info; }
  std::vector<DeviceUse> devices() const override { return {{device(), network_->finished}}; }
  const std::vector<Port>& inputs() const override { return network_->inputs; }
  const std::vector<Port>& outputs() const override { return network_->outputs; }
  unsigned streams() const override { return network_->stream_count(); }
  unsigned optimal_requests() const override {
    return report_.optimal_requests != 0 ? report_.optimal_requests : 2 * streams();
  }
  Precision precision() const override { return report_.precision; }
  std::string launch() const override { return report_.launch; }
  QueueHint priority() const override { return network_->hints.priority; }
  QueueHint throttle() const override { return network_->hints.throttle; }
  const std::vector<std::string>& warnings() const override { return report_.warnings; }
  std::vector<std::string> take_problems() override { return network_->problems.take(); }
  // Any thread may call this.
  void add_problem(std::string problem) { network_->problems.add(std::move(problem)); }
  size_t kernel_count() const override { return network_->whole.kernel_count(); }
  double load_ms() const override { return report_.load_ms; }
  const TuningReport& tuning() const override { return report_.tuning; }
  size_t cached_programs() const override { return network_->whole.programs->counts().cached; }
  size_t built_programs() const override { return network_->whole.programs->counts().built; }
  std::unique_ptr<InferRequest> create_request() override;
  const std::string& sharing_problem() const override { return network_->context->sharing_problem; }
  std::shared_ptr<ImportedSurface> import_surface(unsigned id) override;
  std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                            const Frame& expected) override;
  const std::string& import_problem(MemoryHandle kind) const override {
    return network_->external->problem(kind);
  }
  std::shared_ptr<ImportedMemory> import_memory(MemoryHandle kind, int fd, size_t bytes) override;
  std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                           const Frame& expected) override;
  bool wants_frame_memory() const override { return network_->wants_frame_memory(); }
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override;
  bool fetches_from(const FrameMemory& memory) const override {
    return clinfer::fetches_from(*network_->context, memory);
  }
  std::vector<StepProfile> profile() const override { return network_->profile(); }
  std::vector<std::vector<Shape>> shape_plans() const override {
    return plans_ != nullptr ? plans_->all() : std::vector<std::vector<Shape>>();
  }
  // Must be called before there are requests. May be null.
  void take_plans(std::shared_ptr<ShapePlans> plans) { plans_ = std::move(plans); }

  const DeviceNetwork& network() const { return *network_; }
  const std::shared_ptr<const DeviceNetwork>& shared_network() const { return network_; }

 private:
  // Runs a preprocess kernel for a picture of this size and compares its result as check_surface()
  // documents. `with` acquires the external memory, and `find` gives the kernel's arguments.
  // Returns "" or what differs.
  std::string check_picture(
      const KernelPlan& plan, const TensorDesc& out,
      const std::function<BoundBuffer(const Argument&)>& find,
      const std::function<void(const cl::CommandQueue&, const ocl::AcquireRelease::Use&)>& with,
      const Frame& expected);
  // Returns the queue that maps frame memory. The streams have other queues, because a map waits
  // for all earlier work of its queue.
  cl::CommandQueue frame_queue();

  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<const DeviceNetwork> network_;
  const CompileReport report_;
  std::shared_ptr<ShapePlans> plans_;  // for other shapes of open inputs; may be null
  std::atomic<unsigned> next_request_{0};
  std::mutex mutex_;                                          // guards the members below
  cl::CommandQueue frame_queue_;                              // null until frame_queue() made it
  std::vector<std::weak_ptr<ocl::Surface>> surfaces_;         // imported surfaces
  std::vector<std::weak_ptr<ocl::ExternalMemory>> memories_;  // imported memory
};

}  // namespace clinfer
