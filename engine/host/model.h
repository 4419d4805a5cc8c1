// The first tier of a compiled model: computes on the host until the device's kernels are compiled.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "engine/engine.h"
#include "engine/graph/states.h"
#include "engine/host/network.h"
#include "engine/runtime/frames/lost_images.h"
#include "engine/runtime/frames/picture_planes.h"

namespace clinfer::host {

class HostModel final : public CompiledModel, public std::enable_shared_from_this<HostModel> {
 public:
  // The longest inference, in seconds, for which a first tier is made. Compilers take some 15 s for
  // a large network.
  static constexpr double kLongest = 3;

  // Takes milliseconds. `may_go_on` throws to end the construction. Throws Error{unsupported} if an
  // inference would take more than `longest` seconds, or the host lacks an operation.
  HostModel(std::shared_ptr<const Model> model, const Config& config,
            const std::function<void()>& may_go_on, double longest = kLongest);

  Tier tier() const override { return Tier::first; }
  const Model& model() const override { return *model_; }
  const DeviceInfo& device() const override { return device_; }
  std::vector<DeviceUse> devices() const override { return {{device_, finished_}}; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  unsigned streams() const override { return 1; }
  unsigned optimal_requests() const override { return 2; }
  Precision precision() const override { return Precision::f32; }
  std::string launch() const override { return "host"; }
  QueueHint priority() const override { return QueueHint::automatic; }
  QueueHint throttle() const override { return QueueHint::automatic; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  size_t kernel_count() const override { return 0; }
  double load_ms() const override { return load_ms_; }
  const TuningReport& tuning() const override { return tuning_; }
  size_t cached_programs() const override { return 0; }
  size_t built_programs() const override { return 0; }
  std::unique_ptr<InferRequest> create_request() override;
  const std::string& sharing_problem() const override { return problem_; }
  std::shared_ptr<ImportedSurface> import_surface(unsigned id) override;
  std::string check_surface(const std::shared_ptr<ImportedSurface>& surface,
                            const Frame& expected) override;
  const std::string& import_problem(MemoryHandle) const override { return problem_; }
  std::shared_ptr<ImportedMemory> import_memory(MemoryHandle kind, int fd, size_t bytes) override;
  std::string check_memory(const ImportedPlanes& planes, const Frame& picture,
                           const Frame& expected) override;
  bool wants_frame_memory() const override { return false; }
  std::shared_ptr<FrameMemory> allocate_frame_memory(size_t bytes) override;
  bool fetches_from(const FrameMemory&) const override { return false; }
  std::vector<StepProfile> profile() const override;

  // Must be called before the model is used.
  void warn(std::string warning) { warnings_.push_back(std::move(warning)); }

  // Locked while an inference runs, so that one runs at a time. A thread that holds it pauses the
  // model.
  std::timed_mutex& turn() const { return turn_; }

  // A frame that a request was given last, without its planes, and the input that it was for.
  struct SeenFrame {
    size_t input = 0;
    Frame frame;
    FrameTransform transform;
  };
  std::optional<SeenFrame> last_frame() const;

  // The calls below are made by requests.
  void note(SeenFrame seen) const;
  void count() const { ++*finished_; }
  const std::vector<Port>& network_inputs() const { return network_inputs_; }
  const std::optional<PictureInput>& picture() const { return picture_; }
  const Network& network() const { return *network_; }
  // Returns the number of images that the network was set to; 0: the model's own.
  unsigned batch() const { return batch_; }
  const std::vector<StatePlaces>& states() const { return states_; }
  // Returns the number of threads for an inference. The first one, which somebody waits for, gets
  // all; later ones leave cores to the compilers, and the calling thread's priority is lowered.
  unsigned enter() const;

 private:
  const std::shared_ptr<const Model> model_;
  DeviceInfo device_;
  std::vector<Port> network_inputs_, inputs_, outputs_;
  std::optional<PictureInput> picture_;
  std::vector<StatePlaces> states_;
  std::unique_ptr<const Network> network_;
  unsigned threads_ = 1, batch_ = 0;
  const std::shared_ptr<std::atomic<uint64_t>> finished_ =
      std::make_shared<std::atomic<uint64_t>>();
  mutable std::atomic<bool> had_first_{false};
  std::vector<std::string> warnings_;
  TuningReport tuning_;
  std::string problem_;
  double load_ms_ = 0;
  mutable std::timed_mutex turn_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::optional<SeenFrame> last_frame_;
};

class HostRequest final : public InferRequest {
 public:
  explicit HostRequest(std::shared_ptr<const HostModel> model);
  ~HostRequest() override;

  void set_input(size_t index, const Tensor& value) override;
  std::span<std::byte> input_memory(size_t index) override;
  void cancel() override { stopped_ = true; }
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
  void reset_states() override;
  Tensor state(size_t index) const override;
  void set_state(size_t index, const Tensor& value) override;

  // Computes on the calling thread what start() and wait() do on another one, and returns the
  // outputs. May be called again for the same inputs.
  std::vector<Tensor> infer(const Work& work);
  // Returns the values of the network's inputs in the last inference, frames included.
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  struct Picture {
    Frame frame;
    FrameTransform transform;
  };
  void check_idle() const;
  size_t network_input(size_t index) const;  // converts an index into the model's inputs()
  void compute();                            // runs on the request's thread
  void fill_pictures();
  void read_memory(size_t target);  // copies the application's memory into the input

  const std::shared_ptr<const HostModel> model_;
  std::vector<Tensor> inputs_;
  // The memory that input_memory() returned, by input and as the ports state it; and the inputs
  // that take their values from it.
  std::map<size_t, Tensor> memories_;
  std::set<size_t> from_memory_;
  PicturePlanes planes_;                                   // with NV12_TWO_INPUTS
  std::map<std::pair<size_t, size_t>, Picture> pictures_;  // by input and image, for the next start
  LostImages lost_;  // frames that a failed inference did not read
  const Port& described_state(size_t index) const;
  Tensor initial_state(size_t index) const;
  std::vector<Tensor> states_;  // empty: the initial value
  std::vector<Tensor> outputs_;
  std::thread thread_;
  std::atomic<bool> stopped_{false};
  bool running_ = false;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool over_ = false;
  std::exception_ptr error_;
};

}  // namespace clinfer::host
