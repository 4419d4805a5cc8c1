// Runs the inferences of a request on its stream: launch by launch in OpenCL's queue, or as CUDA
// graphs.
#pragma once

#include <memory>

#include "engine/runtime/run/completion.h"
#include "engine/runtime/run/frame_input.h"
#include "engine/runtime/run/request_memory.h"

namespace clinfer {

// Runs one inference after the other. All functions throw cl::Error and Error. Callers lock the
// stream for write() and the functions after it, which give it work.
class PlanRun {
 public:
  virtual ~PlanRun() = default;
  // Prepares everything for running this plan in this memory. Returns false if that was done
  // before.
  virtual bool prepare(const SizedPlan& sized, RequestMemory& memory) = 0;
  // Begins an inference. The functions below refer to this plan, for which prepare() was called,
  // and this memory.
  virtual void begin(const SizedPlan& sized, RequestMemory& memory) = 0;
  // Allocates host memory from which copies to the device, and from it, are fastest.
  virtual std::shared_ptr<ocl::HostMemory> make_host_memory(size_t bytes) const = 0;
  // Copies a frame's planes to the device. Several threads may call this at a time, for different
  // frames.
  virtual void copy_frame(DeviceFrame& input) = 0;
  // Copies from the host, which must keep the bytes until the segment is over.
  virtual void write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) = 0;
  // Launches the kernels of a frame, which begin after the frame was copied.
  virtual void launch_frame(DeviceFrame& input) = 0;
  // Runs steps from `first` on. Returns the step where it stopped: a host step, the end, or a step
  // that has parts left.
  virtual size_t run(size_t first) = 0;
  virtual bool is_partway() const { return false; }
  // Copies to the host; `to` is complete when the segment is over.
  virtual void read(const ocl::ArgumentPlace& from, void* to, size_t bytes) = 0;
  // Ends the segment and lets the device start on it.
  virtual std::shared_ptr<Completion> end() = 0;
  // Returns the completion of everything that the stream was given, also after an inference that
  // was broken off.
  virtual std::shared_ptr<Completion> end_of_all() = 0;
  // Waits on the host until that is over, without allocating memory. The stream is locked.
  virtual void finish() = 0;
};

}  // namespace clinfer
