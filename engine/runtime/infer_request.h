// One inference in flight on a stream.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/device_network.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/launch.h"
#include "engine/runtime/request_memory.h"
#include "engine/runtime/tensor_copy.h"
#include "engine/runtime/wait_estimator.h"

namespace clinfer {

class DeviceRequest final : public InferRequest {
 public:
  DeviceRequest(std::shared_ptr<DeviceNetwork> network, DeviceStream& stream);
  ~DeviceRequest() override;

  void set_input(size_t index, const Tensor& value) override;
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory) override;
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform,
                        size_t image) override;
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image) override;
  std::span<std::byte> input_memory(size_t index) override;
  void start(size_t images) override;
  bool wait(std::optional<std::chrono::milliseconds> timeout) override;
  void cancel() override { cancelled_ = true; }
  const Tensor& output(size_t index) const override;

  // As the functions of engine/opencl.h. They throw cl::Error, too.
  void set_device_input(size_t index, const cl::Buffer& buffer, size_t offset,
                        const cl::Event& ready);
  Placement set_image(size_t index, const cl::Image2D& picture, const FrameTransform& transform,
                      size_t image);
  void set_device_output(size_t index, const cl::Buffer& buffer, size_t offset);
  const cl::Buffer& own_output_buffer(size_t index);
  void set_output_image(size_t index, const cl::Image2D& image);
  const cl::CommandQueue& queue() const { return stream_.queue; }

  // One inference that stops after each device step and calls `visit`: the step has finished, its
  // operands and results are still in memory. For measuring kernels.
  void run_step_by_step(const std::function<void(size_t step)>& visit);
  // Where a tensor of the whole batch's plan lies.
  BoundBuffer buffer_of(const Edge& edge) const;

 private:
  // An input given by the host: its bytes as the plan stores them, to be uploaded by the next
  // start().
  struct HostInput {
    std::vector<std::byte> bytes;
    bool dirty = false;
    // Of input_memory(), as the port states the input; whether it counts.
    std::shared_ptr<ocl::HostMemory> memory;
    bool from_memory = false;
  };
  // An input in a buffer of the application.
  struct DeviceInput {
    cl::Buffer buffer;
    size_t offset = 0;
    cl::Event ready;  // or none
    std::unique_ptr<TensorCopy> copy;
    bool pending = false;
  };
  // An output that goes to memory of the device.
  struct DeviceOutput {
    cl::Buffer buffer;
    size_t offset = 0;
    cl::Image2D image;  // that gets the buffer's elements, or none
    std::map<const SizedPlan*, std::unique_ptr<TensorCopy>> copies;
  };
  enum class Source { host, surface, memory };
  // An image of an input given as a video frame.
  struct ImageInput {
    Frame frame;
    FrameTransform transform;
    size_t index = 0, image = 0;
    KernelPlan plan;
    std::vector<cl::Kernel> kernels;
    std::vector<cl::Buffer> packed;
    std::array<cl::Buffer, 3> planes;
    std::array<int64_t, 3> starts{};      // of the planes in their buffers, in bytes
    // Of the request's own buffers, kept while they are large enough; 0: the frame is lent.
    std::array<size_t, 3> plane_bytes{};
    bool in_frame_memory = false;         // what they are written from, else:
    std::array<std::unique_ptr<ocl::HostMemory>, 3> pinned;
    cl::Event copied;  // the planes, where another queue copies them
    Source source = Source::host;
    std::array<int, 3> offsets{};  // of the planes in imported memory
    bool pending = false;
  };
  // A range of device memory that the host reads after a segment: a copy, or where it lies.
  struct Readback {
    ocl::HostMemoryPool pool;
    std::shared_ptr<const void> owner;  // none: not read in this segment
    const std::byte* data = nullptr;
  };
  // A read of memory_ that takes long enough to be worth another queue.
  struct LongRead {
    size_t offset, bytes;
    std::byte* to;
  };

  std::shared_ptr<RequestMemory> make_memory();
  // Gives the next inference memory in which no results lie that the application still holds, with the
  // inputs that it does not set anew.
  void leave_results();
  bool is_set_anew(size_t target) const;
  void bind(const SizedPlan& sized);
  BoundBuffer bound(const ocl::ArgumentPlace& place) const;
  size_t network_input(size_t index) const;  // of an index into the model's inputs()
  size_t tensor_input(size_t index) const;   // the same, of an input that is no plane
  const TensorDesc& stored_input(size_t target) const;
  // Forgets earlier values of an input: all but frames, or all.
  void replace_input(size_t target);
  void replace_frames(size_t target);
  void convert_input_memory();
  void upload_inputs();
  DeviceOutput& redirect_output(size_t index);
  TensorDesc given_output(size_t index) const;  // as applications get it
  void deliver_output(size_t index, const Edge& edge);
  static std::pair<const Node*, int> key(const Edge& edge) { return {edge.node, edge.port}; }
  Placement set_picture(size_t index, const Frame& frame, Source source,
                        const std::array<int, 3>& offsets, const FrameTransform& transform,
                        size_t image);
  void prepare(ImageInput& input);
  // Copies pending frames and enqueues their kernels. Locks stream_.
  void enqueue_frames();
  void upload(ImageInput& input);
  void lend(ImageInput& input);
  void bind_frame(ImageInput& input, const ocl::Surface* surface, const PlaneMemories* memories);
  // Enqueues the kernels of a frame in external memory after `acquired`; returns the event of the
  // last one.
  cl::Event enqueue_frame(ImageInput& input, const cl::Event& acquired);
  // Enqueues from next_step_ to a host step, a part of a launch that is cut, or the end; stream_ is
  // locked.
  void run_segment();
  // The launches of next_step_. False where parts of it are left for further segments.
  bool run_step(std::vector<cl::Kernel>& kernels);
  bool run_launches(std::vector<cl::Kernel>& kernels);
  bool run_iterations(std::vector<cl::Kernel>& kernels);
  void bind_iteration(std::vector<cl::Kernel>& kernels, const Loop& loop);
  bool run_part(const cl::Kernel& kernel, const KernelSpec& launch, const Cut& cut,
                cl::Event* event);
  void run_next_part();
  void check_cancelled() const;
  void read_back(const Edge& edge, bool is_result);
  // Enqueues what read_back() has left for the queue of results, and the end of the segment.
  void end_segment();
  void run_host_step();
  void collect_outputs();
  // A place for the event of a command, when times are wanted; else null.
  cl::Event* timed(std::vector<cl::Event>& events);
  void add_times(double convert_ns);
  Tensor value_of(const Edge& edge, ElementType type) const;
  bool lies_as_half(const Edge& edge) const;  // in the memory that was read back
  // False where the segment was not over at the deadline.
  bool wait_for_device(std::optional<std::chrono::steady_clock::time_point> deadline);
  bool sleep_until_over(std::optional<std::chrono::steady_clock::time_point> deadline);
  // When the device ought to have finished; none: it has all the time.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
  [[noreturn]] void give_up();
  // Afterwards nothing is pending, and nothing is in flight that uses this request: what does not
  // end soon keeps copies of all that it needs.
  void abandon() noexcept;

  std::shared_ptr<DeviceNetwork> network_;
  DeviceStream& stream_;
  std::shared_ptr<RequestMemory> memory_;  // of the inference that runs now or ran last
  std::vector<std::shared_ptr<RequestMemory>> other_memories_;
  const SizedPlan* sized_;  // what runs now or ran last
  std::vector<HostInput> host_inputs_;
  std::map<size_t, DeviceInput> device_inputs_;    // by input of the network
  std::map<size_t, DeviceOutput> device_outputs_;  // by output
  std::map<size_t, cl::Buffer> own_outputs_;       // of own_output_buffer()
  std::map<std::pair<size_t, size_t>, std::shared_ptr<ocl::ExternalMemory>>
      image_copies_;                                           // by input of the network and image
  PicturePlanes planes_;                                       // with NV12_TWO_INPUTS
  std::map<std::pair<size_t, size_t>, ImageInput> frames_;     // by input of the network and image
  std::map<std::pair<const Node*, int>, Readback> readbacks_;  // kept between inferences
  std::vector<LongRead> long_reads_;                           // of the segment being enqueued
  std::map<std::pair<const Node*, int>, Tensor> host_values_;  // outputs of host steps
  std::vector<Tensor> outputs_;

  bool running_ = false;
  bool given_up_ = false;                        // while it runs: nobody wants the results any more
  bool has_new_kernels_ = true;                  // since its last inference
  std::chrono::steady_clock::time_point begun_;  // when the device was given the work
  std::atomic<bool> cancelled_{false};
  size_t next_step_ = 0;
  // If that step's launch is cut: where the next segment goes on, and by how many work-groups.
  size_t next_launch_ = 0, next_group_ = 0, part_groups_ = 0;
  // If it is a loop: the next iteration, and how many the next segment runs.
  int64_t next_iteration_ = 0, part_iterations_ = 0;
  bool is_partway() const { return next_group_ != 0 || next_iteration_ != 0; }
  std::chrono::steady_clock::time_point part_begun_;
  cl::Event done_;                // of the last command of the segment
  WaitEstimator wait_estimator_;  // by the step that the segment ends before
  // Wakes a thread that sleeps until the segment has ended.
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  std::shared_ptr<Signal> signal_;  // null: no thread sleeps on it
  // By step and launch, when times are wanted; a launch may be of several parts and iterations.
  std::vector<std::vector<std::vector<cl::Event>>> events_;
  std::vector<double> host_ns_;
  std::vector<unsigned> host_threads_;
  // Likewise, of what is not a step's.
  std::vector<cl::Event> uploads_, preprocessing_, downloads_;
  std::chrono::steady_clock::time_point called_;  // start()
  bool slept_ = false;                 // wait() was called before the last segment was over
  std::function<void(size_t)> visit_;  // of run_step_by_step()
};

}  // namespace clinfer
