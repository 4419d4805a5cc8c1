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
#include "engine/runtime/graph_run.h"
#include "engine/runtime/queue_run.h"
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
  void run_step_by_step(const std::function<void(size_t step)>& visit, size_t images = 0);
  const cl::Buffer& memory() const { return memory_->all.buffer; }
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
  // A range of device memory that the host reads after a segment: a copy, or where it lies.
  struct Readback {
    std::map<const PlanRun*, ocl::HostMemoryPool> pools;
    std::shared_ptr<const void> owner;  // none: not read in this segment
    const std::byte* data = nullptr;
  };
  std::shared_ptr<RequestMemory> make_memory();
  // Gives the next inference memory in which no results lie that the application still holds, with the
  // inputs that it does not set anew.
  void leave_results();
  bool is_set_anew(size_t target) const;
  // Whether the next inference can be launched as graphs: they know host memory alone.
  bool runs_as_graph() const;
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
  Placement set_picture(size_t index, const Frame& frame, FrameInput::Source source,
                        const std::array<int, 3>& offsets, const FrameTransform& transform,
                        size_t image);
  void prepare(FrameInput& input);
  // Copies pending frames and launches their kernels. Locks stream_.
  void enqueue_frames();
  // Enqueues the kernels of a frame in external memory after `acquired`; returns the event of the
  // last one.
  cl::Event enqueue_frame(FrameInput& input, const cl::Event& acquired);
  // Locks the stream for work of this run, after what the other ones gave it.
  std::unique_lock<std::mutex> take_stream(const PlanRun& run) const;
  std::unique_lock<std::mutex> take_stream() const { return take_stream(*run_); }
  // Runs from next_step_ to a host step, a part of a launch that is cut, or the end; stream_ is locked.
  void run_segment();
  void check_cancelled() const;
  void read_back(const Edge& edge, bool is_result);
  void run_host_step();
  void collect_outputs();
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
  QueueRun by_queue_;
  std::unique_ptr<GraphRun> by_graph_;  // null where the network has no graphs
  PlanRun* run_ = &by_queue_;           // of the inference that runs now or ran last
  // Whether OpenCL has work for the next inference, from set_surface() and set_memory().
  bool given_to_queue_ = false;
  std::vector<HostInput> host_inputs_;
  std::map<size_t, DeviceInput> device_inputs_;    // by input of the network
  std::map<size_t, DeviceOutput> device_outputs_;  // by output
  std::map<size_t, cl::Buffer> own_outputs_;       // of own_output_buffer()
  std::map<std::pair<size_t, size_t>, std::shared_ptr<ocl::ExternalMemory>>
      image_copies_;                                           // by input of the network and image
  PicturePlanes planes_;                                       // with NV12_TWO_INPUTS
  std::map<std::pair<size_t, size_t>, FrameInput> frames_;     // by input of the network and image
  std::map<std::pair<const Node*, int>, Readback> readbacks_;  // kept between inferences
  std::map<std::pair<const Node*, int>, Tensor> host_values_;  // outputs of host steps
  std::vector<std::vector<std::byte>> written_;                // of the last one, for the device
  std::vector<Tensor> outputs_;

  bool running_ = false;
  bool given_up_ = false;                        // while it runs: nobody wants the results any more
  bool has_new_kernels_ = true;                  // since its last inference
  std::chrono::steady_clock::time_point begun_;  // when the device was given the work
  std::atomic<bool> cancelled_{false};
  size_t next_step_ = 0;
  std::shared_ptr<Completion> done_;  // of the segment
  WaitEstimator wait_estimator_;      // by the step that the segment ends before
  // Wakes a thread that sleeps until the segment has ended.
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  std::shared_ptr<Signal> signal_;  // null: no thread sleeps on it
  std::vector<double> host_ns_;
  std::vector<unsigned> host_threads_;
  std::chrono::steady_clock::time_point called_;  // start()
  bool slept_ = false;  // wait() was called before the last segment was over
};

}  // namespace clinfer
