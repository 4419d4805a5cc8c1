// Runs a request's inferences on its stream: launch by launch in OpenCL's queue, or as graphs.
#pragma once

#include <memory>

#include "engine/runtime/completion.h"
#include "engine/runtime/frame_input.h"
#include "engine/runtime/request_memory.h"

namespace clinfer {

// The work of one inference after the other, in order. All functions throw cl::Error and Error. The
// stream is locked while those are called that give it work, from write() on.
class PlanRun {
 public:
  virtual ~PlanRun() = default;
  // Makes what running this plan in this memory needs; false where that was there.
  virtual bool prepare(const SizedPlan& sized, RequestMemory& memory) = 0;
  // An inference begins: the functions below concern this plan, which was prepared, and this memory.
  virtual void begin(const SizedPlan& sized, RequestMemory& memory) = 0;
  // Memory of the host that copies to and from the device pass at their best.
  virtual std::shared_ptr<ocl::HostMemory> make_host_memory(size_t bytes) const = 0;
  // Copies a frame's planes to the device. Several threads may do so at a time.
  virtual void copy_frame(DeviceFrame& input) = 0;
  // Copies from the host, which keeps the bytes until the segment is over.
  virtual void write(const ocl::ArgumentPlace& to, const void* from, size_t bytes) = 0;
  // Launches the kernels of a frame, which run when it was copied.
  virtual void launch_frame(DeviceFrame& input) = 0;
  // Runs steps from `first` on; returns where it stopped: at a host step, the end, or a step of which
  // parts are left.
  virtual size_t run(size_t first) = 0;
  virtual bool is_partway() const { return false; }
  // Copies to the host until the segment is over.
  virtual void read(const ocl::ArgumentPlace& from, void* to, size_t bytes) = 0;
  // Ends the segment, and lets the device begin with it.
  virtual std::shared_ptr<Completion> end() = 0;
  // Returns the completion of all that the stream was given, also where an inference was broken
  // off.
  virtual std::shared_ptr<Completion> end_of_all() = 0;
};

}  // namespace clinfer
