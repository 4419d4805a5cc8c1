// One inference in flight on a stream.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "engine/runtime/requests/request_inputs.h"
#include "engine/runtime/requests/request_outputs.h"
#include "engine/runtime/requests/request_states.h"
#include "engine/runtime/requests/wait_estimator.h"
#include "kernels/base/default_floats.h"

namespace clinfer {

// A request of a model on one device. Gives the device its inputs, launches and read-backs,
// computes steps on the host, and waits.
class DeviceRequest final : public InferRequest {
 public:
  DeviceRequest(std::shared_ptr<const DeviceNetwork> network, DeviceStream& stream);
  ~DeviceRequest() override;

  void set_input(size_t index, const Tensor& value) override {
    const DefaultFloats floats;
    inputs_.set_tensor(index, value);
  }
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory) override {
    const DefaultFloats floats;
    return inputs_.set_frame(index, frame, transform, image, memory);
  }
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform,
                        size_t image) override {
    const DefaultFloats floats;
    return inputs_.set_surface(index, surface, picture, transform, image);
  }
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image) override {
    const DefaultFloats floats;
    return inputs_.set_memory(index, planes, picture, transform, image);
  }
  std::span<std::byte> input_memory(size_t index) override { return inputs_.memory(index); }
  void start(size_t images) override;
  bool wait(std::optional<std::chrono::milliseconds> timeout) override;
  void cancel() override { cancelled_ = true; }
  const Tensor& output(size_t index) const override { return outputs_.at(index); }
  void reset_states() override { states_.reset(); }
  Tensor state(size_t index) const override;
  void set_state(size_t index, const Tensor& value) override;

  // Lets the next start() upload again what set_input() stored, without a conversion on the host:
  // for measurements. To be called while idle.
  void upload_again() { inputs_.upload_again(); }
  // Used by the functions of engine/opencl.h while the request is idle.
  RequestInputs& inputs() { return inputs_; }
  RequestOutputs& outputs() { return outputs_; }
  const DeviceNetwork& network() const { return network_; }
  void check_idle() const { work_.check_idle(); }
  const cl::CommandQueue& queue() const { return stream_.queue; }

  // Runs one inference that stops after each device step and calls `visit`; the operands and
  // results of the step are then still in memory. For measuring kernels.
  void run_step_by_step(const std::function<void(size_t step)>& visit, size_t images = 0);
  // Makes inferences use OpenCL's queue even if the network has graphs.
  void keep_to_queue(bool keeps) { keeps_to_queue_ = keeps; }
  const cl::Buffer& memory() const { return work_.memory->all.buffer; }
  // Returns where a tensor of the whole batch's plan lies.
  BoundBuffer buffer_of(const Edge& edge) const { return work_.buffer_of(edge); }

 private:
  void enqueue(size_t images);
  // Gives the next inference memory that holds no results which the application still uses, and
  // copies there the inputs that are not set anew.
  void leave_results();
  // Runs from next_step_ to a host step, to the end of a part of a cut launch, or to the end of the
  // plan. Needs stream_ locked.
  void run_segment();
  void check_cancelled() const;
  void run_host_step();
  void collect_outputs();
  void add_times(double convert_ns);
  // Returns false if the segment was not over at the deadline.
  bool wait_for_device(std::optional<std::chrono::steady_clock::time_point> deadline);
  bool sleep_until_over(std::optional<std::chrono::steady_clock::time_point> deadline);
  // Returns when the device must have finished; nothing where it may take any time.
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
  [[noreturn]] void give_up();
  // Drops the inference. Afterwards nothing in flight refers to this request: work that does not
  // end soon keeps alive what it uses.
  void abandon() noexcept;
  // Waits for all work of the stream, for as long as it takes.
  void wait_for_all() noexcept;

  RequestWork work_;
  const DeviceNetwork& network_;
  DeviceStream& stream_;
  RequestInputs inputs_;
  RequestOutputs outputs_;
  RequestStates states_;
  std::vector<std::shared_ptr<RequestMemory>> other_memories_;
  // Results of the last host step on their way to the device.
  std::vector<std::vector<std::byte>> written_;

  bool keeps_to_queue_ = false;
  bool given_up_ = false;  // still running, but nobody wants the results any more
  std::chrono::steady_clock::time_point begun_;  // when the device got the work
  std::atomic<bool> cancelled_{false};
  size_t next_step_ = 0;
  std::shared_ptr<Completion> done_;  // of the current segment
  WaitEstimator wait_estimator_;      // by the step that follows the segment
  // Wakes the thread that sleeps until the segment has ended.
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  std::shared_ptr<Signal> signal_;  // null while no thread sleeps on it
  std::vector<double> host_ns_;
  std::vector<unsigned> host_threads_;
  std::chrono::steady_clock::time_point called_;  // when start() was called
  bool slept_ = false;  // true if wait() was called before the last segment was over
};

}  // namespace clinfer
