// A model compiled for one device: plan, programs, weights, streams.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "engine/ocl/dmabuf.h"
#include "engine/ocl/persistent.h"
#include "engine/ocl/programs.h"
#include "engine/ocl/queue.h"
#include "engine/ocl/va_sharing.h"
#include "engine/plan/plan.h"
#include "engine/runtime/frames/picture_planes.h"
#include "engine/runtime/launch.h"
#include "engine/runtime/model.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

class Tuning;

// One in-order queue with the activation memory that its requests share, one after the other.
struct Stream {
  cl::CommandQueue queue;
  cl::Buffer memory;
  std::mutex mutex;  // held while the launches of one segment are enqueued, never while waiting
  // Of persistent kernels: the arrival counter of their grid-wide barrier, and its value once all
  // launches so far have run.
  cl::Buffer barrier_counter;
  cl_uint barriers_passed = 0;
  // When an inference on it was last seen to be finished, and whether one was given up since.
  std::atomic<std::chrono::steady_clock::time_point> last_finished{};
  std::atomic<bool> given_up{false};
};

// Steps that one persistent kernel computes.
struct PersistentSteps {
  size_t first, end;
  ocl::PersistentKernel kernel;
  cl::Buffer list;
};

// The plan for so many images, with what its launches refer to.
struct SizedPlan {
  Plan plan;
  std::shared_ptr<const ocl::Programs> programs;
  std::vector<std::vector<std::string>> kernel_names;  // by step and launch
  // Bytes in the model's weights, by step and packed constant.
  std::vector<std::vector<size_t>> packed_offsets;
  std::vector<PersistentSteps> persistent;  // instead of launches of their own

  // Where an argument of a step lies: in the memory of the stream (0), of the request (1), or in
  // the weights (2), as Memory counts them.
  ocl::ArgumentPlace place_of(const Edge& edge) const;
  ocl::ArgumentPlace place_of(size_t step, const Argument& argument) const;
  // The persistent kernel that a step begins; nullptr: it has launches of its own.
  const PersistentSteps* persistent_at(size_t step) const;
  size_t kernel_count() const;
};

// Options of compilations that the engine does for itself (layer comparison, A/B timing).
struct InternalOptions {
  // All layers' values follow the outputs, in the order of plan().graph->results.
  bool expose_layers = false;
  bool one_stream = false;  // streams on AUTO are not measured
};

class DeviceModel final : public CompiledModel, public std::enable_shared_from_this<DeviceModel> {
 public:
  DeviceModel(std::shared_ptr<const Model> model, const Config& config, const Progress& progress,
              const TuningObserver& observer, const InternalOptions& special = {});
  ~DeviceModel() override;

  const Model& model() const override { return *model_; }
  const DeviceInfo& device() const override { return context_->device.info; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  unsigned streams() const override { return static_cast<unsigned>(streams_.size()); }
  unsigned optimal_requests() const override {
    return optimal_requests_ != 0 ? optimal_requests_ : 2 * streams();
  }
  Precision precision() const override { return precision_; }
  QueueHint priority() const override { return hints_.priority; }
  QueueHint throttle() const override { return hints_.throttle; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  size_t kernel_count() const override { return whole_.kernel_count(); }
  double load_ms() const override { return load_ms_; }
  const TuningReport& tuning() const override { return tuning_; }
  size_t cached_programs() const override { return whole_.programs->counts().cached; }
  size_t built_programs() const override { return whole_.programs->counts().built; }
  std::unique_ptr<InferRequest> create_request() override;
  const std::string& sharing_problem() const override { return context_->sharing_problem; }
  std::shared_ptr<ImportedSurface> import_surface(unsigned id) override;
  std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                            const Frame& expected) override;
  const std::string& dmabuf_problem() const override { return dmabufs_->problem(); }
  std::shared_ptr<ImportedMemory> import_dmabuf(int fd, size_t bytes) override;
  std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                           const Frame& expected) override;
  bool wants_frame_memory() const override {
    return !context_->traits.is_cpu && !context_->device.info.is_integrated;
  }
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override;
  bool fetches_from(const FrameMemory& memory) const override;
  std::vector<StepProfile> profile() const override;

  // For requests:
  const ocl::Context& context() const { return *context_; }
  const ocl::DmabufSharing& dmabufs() const { return *dmabufs_; }
  const std::vector<Port>& network_inputs() const {
    return network_inputs_;
  }  // as the plan has them
  const std::optional<PictureInput>& picture() const {
    return picture_;
  }                                                 // that is given as planes
  const Plan& plan() const { return whole_.plan; }  // of a whole batch
  // The smallest that computes `images` of a batch; 0: all.
  const SizedPlan& plan_for(size_t images) const;
  size_t request_bytes() const;  // that any of the plans needs
  const cl::Buffer& weights() const { return weights_; }
  Stream& stream(size_t index) const { return *streams_[index]; }
  // Work-groups of a persistent kernel: the streams' run at the same time.
  unsigned persistent_groups() const {
    return share_ ? share_->groups() / static_cast<unsigned>(streams_.size()) : 1;
  }
  bool perf_count() const { return config_.perf_count; }
  std::chrono::milliseconds device_timeout() const { return config_.device_timeout; }
  // The layer that computes most, with its work, for messages; empty where none is known.
  const std::string& largest_layer() const { return largest_layer_; }
  bool half_outputs() const { return config_.half_outputs; }
  bool waits_asleep() const { return config_.throttle == QueueHint::low; }
  const cl::CommandQueue& queue(size_t stream) const { return streams_[stream]->queue; }
  // The best tuning point to convert frames of a kind into a network input.
  TuningPoint preprocess_point(size_t input, PictureKind kind) const;
  // A kernel outside the plan (preprocessing), built at its first use and kept. Thread-safe.
  cl::Kernel extra_kernel(const KernelSpec& spec);
  // Adds the times of one finished inference, in nanoseconds per step.
  void add_times(const std::vector<double>& device_ns, const std::vector<double>& host_ns);

 private:
  // Constants on their way to the device: all bytes, and by name where they lie among them.
  struct HostWeights {
    std::vector<std::byte> bytes;
    std::map<std::string, std::pair<size_t, size_t>> places;  // offset and size

    // Where `piece` lies, which is added unless the same is there under this name.
    size_t add(const std::string& name, std::span<const std::byte> piece);
  };

  // Runs a preprocess kernel for a picture of this size, whose use of others' memory `with` wraps
  // and whose arguments `find` gives, and compares as check_surface() says.
  std::string check_picture(
      const KernelPlan& plan, const TensorDesc& out,
      const std::function<BoundBuffer(const Argument&)>& find,
      const std::function<void(const cl::CommandQueue&, const ocl::AcquireRelease::Use&)>& with,
      const Frame& expected);
  void open_device();
  void warn_once(const std::string& warning);
  std::unique_ptr<Graph> make_graph(bool expose_layers);
  void optimise(Graph& graph, bool expose_layers, const std::string& dumps_dir) const;
  void choose_preprocess(Tuning& tuning);
  TuningPoint default_preprocess_point() const;
  void use_measured_pipeline();
  void add_up_work();
  void warm_up(const Progress& progress, bool driver_compiles);
  // From the whole plan: weights, programs, streams. Without `persistent`, each step by itself.
  // `by_turns_with` (or nullptr): Config::by_turns_with.
  HostWeights build_for_device(const Progress& progress, bool persistent,
                               const DeviceModel* by_turns_with);
  std::unique_ptr<DeviceModel> make_untuned(const Progress& progress);
  void make_persistent_steps(const DeviceModel* by_turns_with);
  std::vector<bool> find_parts(const DeviceModel* by_turns_with);
  bool take_share(const DeviceModel* by_turns_with);
  void build(SizedPlan& sized, const Progress& progress);
  void collect_weights(SizedPlan& sized, HostWeights& weights) const;
  void upload(HostWeights& weights);
  void add_partial_batches(HostWeights& weights, const Progress& progress);
  std::optional<SizedPlan> plan_partial_batch(int64_t images) const;
  void make_streams(unsigned count);
  void choose_streams(const Progress& progress);
  double measure_throughput();
  std::string stream_key() const;

  std::shared_ptr<const Model> model_;
  Config config_;
  std::shared_ptr<const ocl::ExclusiveQueue> exclusive_;  // or none
  std::shared_ptr<const ocl::Context> context_;
  DeviceTraits traits_;  // the context's, as kernels are chosen for this model's streams
  std::unique_ptr<const ocl::DmabufSharing> dmabufs_;
  ocl::QueueHints hints_;
  std::string largest_layer_;
  std::vector<std::string> warnings_;
  std::unique_ptr<ocl::ProgramCache> cache_;
  Precision precision_ = Precision::f32;
  std::vector<Port> inputs_, network_inputs_, outputs_;
  std::optional<PictureInput> picture_;
  unsigned optimal_requests_ = 0;  // as the tuning file says; 0: 2 x streams
  SizedPlan whole_;
  std::map<size_t, SizedPlan> partial_;  // of less than a batch, by images
  // Of the device, for persistent kernels that need it.
  std::shared_ptr<const ocl::GroupShare> share_;
  cl::Buffer weights_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::atomic<unsigned> next_request_{0};
  std::map<std::pair<size_t, PictureKind>, TuningPoint> preprocess_points_;  // by network input
  TuningReport tuning_;
  double load_ms_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<const ocl::Programs>> extra_;
  std::vector<double> device_ns_, host_ns_;
  size_t inferences_ = 0;
  std::vector<std::weak_ptr<ocl::Surface>> surfaces_;         // imported ones
  std::vector<std::weak_ptr<ocl::ExternalMemory>> memories_;  // the same
};

// The surface of this model that the public type refers to. Throws Error{bad_argument} for one of
// another context.
ocl::Surface& own_surface(const DeviceModel& model, ImportedSurface& surface);

// The memory of each plane of a picture; null for planes that its format lacks.
using PlaneMemories = std::array<ocl::ExternalMemory*, 3>;

}  // namespace clinfer
