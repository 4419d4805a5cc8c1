// Tells when work that a device was given has ended.
#pragma once

#include <CL/opencl.hpp>
#include <functional>
#include <memory>

#include "engine/cuda/stream.h"

namespace clinfer {

// The end of one piece of work. Thread-safe.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual bool is_over() = 0;  // also true if the work failed
  // Blocks until the work is over. Throws cl::Error or Error if it failed.
  virtual void wait() = 0;
  // Calls `function` on another thread when the work is over. Drivers may skip the call if the work
  // fails.
  virtual void call_when_over(std::function<void()> function) = 0;
};

// The completion of commands in an OpenCL queue.
class QueueCompletion final : public Completion {
 public:
  explicit QueueCompletion(cl::Event event) : event_(std::move(event)) {}
  bool is_over() override;
  void wait() override;
  void call_when_over(std::function<void()> function) override;

 private:
  const cl::Event event_;
};

// The completion of work on a stream of CUDA.
class StreamCompletion final : public Completion {
 public:
  explicit StreamCompletion(std::shared_ptr<const cuda::Device> device)
      : device_(std::move(device)), event_(device_) {}
  void record(const cuda::Stream& stream) { stream.record(event_); }
  bool is_over() override;
  void wait() override;
  void call_when_over(std::function<void()> function) override;

 private:
  const std::shared_ptr<const cuda::Device> device_;
  cuda::Event event_;
  // A stream of its own, since a callback would delay what follows on the work's stream.
  std::unique_ptr<cuda::Stream> calling_;
};

}  // namespace clinfer
