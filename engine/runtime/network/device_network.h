// A network on one device, ready to run: plans, programs, weights, streams. Requests run it, and
// measurements use it as their bench. engine/compile builds it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/stream.h"
#include "engine/engine.h"
#include "engine/ocl/compiler/persistent.h"
#include "engine/ocl/compiler/programs.h"
#include "engine/ocl/external_memory.h"
#include "engine/ocl/host_memory.h"
#include "engine/ocl/queue.h"
#include "engine/ocl/va_sharing.h"
#include "engine/plan/loop.h"
#include "engine/runtime/frames/picture_planes.h"
#include "engine/runtime/network/device_memory.h"
#include "engine/runtime/network/graph_kernels.h"
#include "engine/runtime/network/launch.h"
#include "engine/runtime/network/problems.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// CUDA streams. `main` runs the graphs. `writes` and `reads` copy; they exist where the OpenCL
// queue has queues for copies beside it.
struct GraphStreams {
  cuda::Stream main;
  std::unique_ptr<cuda::Stream> writes, reads;
};

// An in-order queue and the activation memory that its requests share, one after the other.
struct DeviceStream {
  cl::CommandQueue queue;
  // Queues for transfers beside the kernels of `queue`, ordered by events: `copies` moves frames
  // from host memory into buffers that nothing else writes, `results` moves large results out of
  // the memory of requests. Null where `queue` does that as well, as for single images, whose
  // latency the events would increase.
  cl::CommandQueue copies, results;
  DeviceMemory memory;
  SubBuffers parts;                    // of `memory`
  std::unique_ptr<GraphStreams> cuda;  // null where all inferences are launched by OpenCL
  // True if the last inference was launched as graphs. The next inference begins after it;
  // take_turn() makes the host wait if that one uses the other kind of launch.
  bool graph_ran = false;
  void take_turn(bool as_graph);

  std::mutex mutex;     // held while the launches of one segment are enqueued, never while waiting
  cl::Buffer counters;  // of the persistent kernels
  // When an inference of this stream was last seen to be finished, and whether one was given up
  // since then.
  std::atomic<std::chrono::steady_clock::time_point> last_finished{};
  std::atomic<bool> given_up{false};
};

// Steps that one persistent kernel computes.
struct PersistentSteps {
  size_t first, end;
  ocl::PersistentKernel kernel;
  cl::Buffer list;
};

// The plan for one number of images, with everything that its launches refer to.
struct SizedPlan {
  Plan plan;
  std::shared_ptr<const ocl::Programs> programs;
  std::vector<std::vector<std::string>> kernel_names;  // by step and launch
  // Byte offsets in the weights, by step and packed constant.
  std::vector<std::vector<size_t>> packed_offsets;
  std::vector<PersistentSteps> persistent;  // replace the launches of the steps that they contain

  // Returns where an argument of a step lies: in the memory of the stream (0), of the request (1),
  // or in the weights (2). The numbers are those of Memory.
  ocl::ArgumentPlace place_of(const Edge& edge) const;
  ocl::ArgumentPlace place_of(size_t step, const Argument& argument) const;
  // Returns the persistent kernel that begins at this step; nullptr where the step has its own
  // launches.
  const PersistentSteps* persistent_at(size_t step) const;
  size_t kernel_count() const;
};

// A value that requests keep from one inference to the next.
struct NetworkState {
  Port port;
  size_t parameter = 0;          // indices as in StatePlaces
  std::optional<size_t> result;  // none: inferences leave the value as it is
  std::optional<size_t> is_new;
  std::vector<std::byte> initial;  // the value after a reset, as the plan stores it
};

// Times of one inference outside of its steps: transfers and preprocessing on the device,
// conversion of outputs on the host, and the total.
struct Overhead {
  double upload_ns = 0, preprocess_ns = 0, download_ns = 0, convert_ns = 0, total_ns = 0;
};

// Options for the requests of a network. The names are those of Config's members.
struct RunOptions {
  bool perf_count = false;
  bool half_outputs = false;
  bool waits_asleep = false;  // Config::throttle is low
  std::chrono::milliseconds device_timeout{0};
  unsigned host_threads = 0;  // of a step on the host; 0: one per core
  std::string sources_dumps_dir = {};
  // True if the driver may compile kernels at their first launch, which device_timeout then does not
  // limit: rusticl's drivers do so, and others where kernels are compiled in this process.
  bool driver_compiles = false;
};

// A network that is ready to run. ModelCompiler fills it and hands it out as const, so that
// requests and measurements, which share it, cannot change what it computes. Any thread may call
// the const functions. make_streams() may be called while there are no requests.
class DeviceNetwork {
 public:
  RunOptions options;
  std::string name;           // the model's, for messages
  std::string largest_layer;  // the layer with the most work, for messages; may be empty
  std::shared_ptr<const ocl::ExclusiveQueue> exclusive;  // may be null
  std::shared_ptr<const ocl::Context> context;
  std::shared_ptr<const cuda::Device> cuda;     // null unless inferences run as graphs
  std::shared_ptr<GraphKernels> graph_kernels;  // null without `cuda`
  DeviceTraits traits;  // the context's traits, adjusted to this network's streams
  ocl::QueueHints hints;
  std::unique_ptr<const ocl::MemorySharing> external;  // imports memory of other APIs
  std::unique_ptr<ocl::ProgramCache> cache;            // may be null
  std::vector<Port> inputs, outputs;
  std::vector<Port> network_inputs;     // as the plan has them
  std::optional<PictureInput> picture;  // the input that applications give as planes
  std::vector<NetworkState> states;
  SizedPlan whole;
  std::map<size_t, SizedPlan> partial;  // plans for parts of a batch, by number of images
  DeviceMemory weights;
  mutable SubBuffers weight_parts;  // cut out of the weights when first used
  // Number of inferences that applications finished. Outlives the network.
  const std::shared_ptr<std::atomic<uint64_t>> finished = std::make_shared<std::atomic<uint64_t>>();
  std::map<std::pair<size_t, PictureKind>, TuningPoint> preprocess_points;  // by network input
  mutable Problems problems;  // what users are to be told while the network runs

  // Replaces the streams, while there are no requests.
  void make_streams(unsigned count);
  unsigned stream_count() const { return static_cast<unsigned>(streams_.size()); }
  DeviceStream& stream(size_t index) const { return *streams_[index]; }

  const Plan& plan() const { return whole.plan; }  // for a whole batch
  // Returns the smallest plan that computes `images` images of a batch; 0 means all of them.
  const SizedPlan& plan_for(size_t images) const;
  size_t request_bytes() const;  // the largest need of all plans
  // Returns the number of work-groups of a persistent kernel: one for each core of a stream.
  unsigned persistent_groups() const { return persistent_groups(stream_count()); }
  // Returns the same for another number of streams.
  unsigned persistent_groups(unsigned streams) const;
  // Returns the best known tuning point for converting frames of a kind into a network input.
  TuningPoint preprocess_point(size_t input, PictureKind kind) const;
  TuningPoint default_preprocess_point() const;
  bool shares_host_memory() const {
    return context->device.info.is_cpu || context->device.info.is_integrated;
  }
  // Returns whether the device reads frames faster from frame memory than from other host memory.
  bool wants_frame_memory() const { return !shares_host_memory(); }
  // Allocates host memory from which copies to the device, and from it, are fast. Where CUDA does
  // not pin it, it is mapped by `queue`, which finishes its work first.
  std::shared_ptr<ocl::HostMemory> make_host_memory(const cl::CommandQueue& queue,
                                                    size_t bytes) const;
  // Returns a kernel outside of the plan (preprocessing). It is built when first used, and kept.
  cl::Kernel extra_kernel(const KernelSpec& spec) const;
  // As above, for CUDA; null where CUDA does not take it, which becomes a problem once.
  std::shared_ptr<const cuda::Kernel> extra_graph_kernel(const KernelSpec& spec) const;

  // Adds the times of one finished inference: `launch_ns` in nanoseconds on the device by step and
  // launch, `host_ns` in nanoseconds by step, and the number of threads that each step on the host
  // took.
  void add_times(const std::vector<std::vector<double>>& launch_ns,
                 const std::vector<double>& host_ns, const std::vector<unsigned>& host_threads,
                 const Overhead& overhead) const;
  void clear_times();
  // Implements CompiledModel::profile().
  std::vector<StepProfile> profile() const;

 private:
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<std::string, std::shared_ptr<const ocl::Programs>> extra_;
  mutable bool told_of_frames_ = false;  // that CUDA does not take a frame's kernel
  mutable std::vector<std::vector<double>> launch_ns_;
  mutable std::vector<double> host_ns_;
  mutable std::vector<unsigned> host_threads_;  // the most that any inference took
  mutable Overhead overhead_;
  mutable size_t inferences_ = 0;
};

}  // namespace clinfer
