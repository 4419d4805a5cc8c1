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
#include "engine/ocl/external_memory.h"
#include "engine/ocl/host_memory.h"
#include "engine/ocl/persistent.h"
#include "engine/ocl/programs.h"
#include "engine/ocl/queue.h"
#include "engine/ocl/va_sharing.h"
#include "engine/plan/loop.h"
#include "engine/runtime/device_memory.h"
#include "engine/runtime/frames/picture_planes.h"
#include "engine/runtime/launch.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Streams of CUDA: for graphs, and, where the queue has queues for copies beside it, for copies.
struct GraphStreams {
  cuda::Stream main;
  std::unique_ptr<cuda::Stream> writes, reads;
};

// One in-order queue with the activation memory that its requests share, one after the other.
struct DeviceStream {
  cl::CommandQueue queue;
  // Queues for what the bus carries beside the kernels of `queue`, ordered by events: frames from host
  // memory, into buffers that nothing else writes, and large results out of the memory of requests.
  // Null: `queue` does that as well. So it is for single images, whose latency the events would add to.
  cl::CommandQueue copies, results;
  DeviceMemory memory;
  SubBuffers parts;                    // of the memory
  std::unique_ptr<GraphStreams> cuda;  // null where all inferences are launched by OpenCL
  // Whether the last inference was launched as graphs. The next one's work begins after it: the host
  // waits where that is on the other side.
  bool graph_ran = false;
  void take_turn(bool as_graph);

  std::mutex mutex;  // held while the launches of one segment are enqueued, never while waiting
  // The counters of the persistent kernels, and the arrivals once all launches so far have run.
  cl::Buffer counters;
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

// The plan for a number of images, with what its launches refer to.
struct SizedPlan {
  Plan plan;
  std::shared_ptr<const ocl::Programs> programs;
  std::vector<std::vector<std::string>> kernel_names;  // by step and launch
  // Bytes in the weights, by step and packed constant.
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

// Times of one inference besides those of its steps: on the device, for converting outputs on the
// host, and of the whole of it.
struct Overhead {
  double upload_ns = 0, preprocess_ns = 0, download_ns = 0, convert_ns = 0, total_ns = 0;
};

// How requests use a network; the names are those of Config.
struct RunOptions {
  bool perf_count = false;
  bool half_outputs = false;
  bool waits_asleep = false;  // Config::throttle is low
  std::chrono::milliseconds device_timeout{0};
  unsigned host_threads = 0;  // of a step on the host; 0: one per core
  std::string sources_dumps_dir = {};
  // Kernels are compiled in this process, and perhaps not before they are launched.
  bool driver_compiles = false;
};

// ModelCompiler fills it and hands it out as const, so that requests and measurements cannot change what it
// computes. They share it: any thread may call the functions that are const. Streams may be made anew while
// there are no requests.
class DeviceNetwork {
 public:
  RunOptions options;
  std::string name;           // the model's, for messages
  std::string largest_layer;  // the layer that computes most, with its work, for messages; or empty
  std::shared_ptr<const ocl::ExclusiveQueue> exclusive;  // or none
  std::shared_ptr<const ocl::Context> context;
  std::shared_ptr<const cuda::Device> cuda;  // where inferences run as graphs; else null
  std::map<std::string, std::shared_ptr<const cuda::Kernel>> graph_kernels;  // by name
  DeviceTraits traits;  // the context's, as kernels are chosen for this network's streams
  ocl::QueueHints hints;
  std::unique_ptr<const ocl::MemorySharing> external;  // memory of others
  std::unique_ptr<ocl::ProgramCache> cache;            // or none
  std::vector<Port> inputs, outputs;
  std::vector<Port> network_inputs;     // as the plan has them
  std::optional<PictureInput> picture;  // the input that is given as planes
  SizedPlan whole;
  std::map<size_t, SizedPlan> partial;  // of less than a batch, by images
  // This network's share of the device's work-groups; null: no persistent kernel needs it.
  std::shared_ptr<const ocl::GroupShare> share;
  DeviceMemory weights;
  mutable SubBuffers weight_parts;  // cut out of the weights at their first use
  // Inferences of applications that were finished; counts on after the network's end.
  const std::shared_ptr<std::atomic<uint64_t>> finished = std::make_shared<std::atomic<uint64_t>>();
  std::map<std::pair<size_t, PictureKind>, TuningPoint> preprocess_points;  // by network input

  // Replaces the streams, while there are no requests.
  void make_streams(unsigned count);
  unsigned stream_count() const { return static_cast<unsigned>(streams_.size()); }
  DeviceStream& stream(size_t index) const { return *streams_[index]; }

  const Plan& plan() const { return whole.plan; }  // of a whole batch
  // The smallest that computes `images` of a batch; 0: all.
  const SizedPlan& plan_for(size_t images) const;
  size_t request_bytes() const;  // largest need of all plans
  // Work-groups of a persistent kernel: the kernels of all streams run at the same time.
  unsigned persistent_groups() const { return persistent_groups(stream_count()); }
  // Gives their number for another number of streams.
  unsigned persistent_groups(unsigned streams) const;
  // The best tuning point to convert frames of a kind into a network input.
  TuningPoint preprocess_point(size_t input, PictureKind kind) const;
  TuningPoint default_preprocess_point() const;
  bool shares_host_memory() const {
    return context->device.info.is_cpu || context->device.info.is_integrated;
  }
  // Whether the device fetches frames faster from frame memory than from other host memory.
  bool wants_frame_memory() const { return !shares_host_memory(); }
  // Memory of the host that copies to and from the device pass.
  std::shared_ptr<ocl::HostMemory> make_host_memory(const cl::CommandQueue& queue,
                                                    size_t bytes) const;
  // A kernel outside the plan (preprocessing), built at its first use and kept.
  cl::Kernel extra_kernel(const KernelSpec& spec) const;
  std::shared_ptr<const cuda::Kernel> extra_graph_kernel(const KernelSpec& spec) const;  // likewise

  // Adds the times of one finished inference, in nanoseconds per step, on the device per launch of
  // it, and the number of threads that each step on the host took.
  void add_times(const std::vector<std::vector<double>>& launch_ns,
                 const std::vector<double>& host_ns, const std::vector<unsigned>& host_threads,
                 const Overhead& overhead) const;
  void clear_times();
  // As CompiledModel::profile().
  std::vector<StepProfile> profile() const;

 private:
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::string, std::shared_ptr<const ocl::Programs>> extra_;
  mutable std::map<std::string, std::shared_ptr<const cuda::Kernel>> extra_graph_kernels_;
  mutable std::vector<std::vector<double>> launch_ns_;
  mutable std::vector<double> host_ns_;
  mutable std::vector<unsigned> host_threads_;  // the most of an inference
  mutable Overhead overhead_;
  mutable size_t inferences_ = 0;
};

}  // namespace clinfer
