// The end of work that a device was given.
#pragma once

#include <CL/opencl.hpp>
#include <functional>
#include <memory>

#include "engine/cuda/stream.h"

namespace clinfer {

// Thread-safe.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual bool is_over() = 0;  // whether it succeeded or failed
  virtual void wait() = 0;     // until it is over. Throws cl::Error or Error where it failed
  // Calls it on another thread when the work is over; perhaps not where it fails.
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
  std::unique_ptr<cuda::Stream> calling_;  // not the work's: calls would delay what follows there
};

}  // namespace clinfer
