// The tuner's interface to the engine: runs one step of a network by other kernels than the chosen
// one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// Runs on the network's own buffers, with the inputs that the step has in a real inference. Used by
// one thread.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;

  // prepare() will be asked for these: compilers may begin, where they do not disturb the
  // measuring.
  virtual void expect(std::span<const KernelPlan> plans) = 0;

  // Makes kernel plans ready to run: programs built, weights packed. Returns one text for each: "",
  // or why it cannot run (the compiler's complaint). They are numbered on from those of earlier
  // calls. `has_time`, if any, is asked before each but the first, on any thread: once it says no,
  // the rest is not begun, not numbered, and has no text.
  virtual std::vector<std::string> prepare(std::span<const KernelPlan> plans,
                                           const std::function<bool()>& has_time) = 0;

  // Runs plan `number` once on poisoned outputs and compares with what the network's own kernel
  // wrote: "", or what is wrong.
  virtual std::string verify(size_t number) = 0;

  // Nanoseconds of one execution of plan `number`: the mean of `repeat` in a row, warm. Throws
  // Error{device_failed}.
  virtual double time(size_t number, unsigned repeat) = 0;
};

}  // namespace clinfer
