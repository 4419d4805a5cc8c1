// The tuner's interface to the engine: runs one step of a network by other kernels than the chosen
// one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

// Runs on the network's own buffers, with the inputs that the step has in a real inference. To be
// used by one thread.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;

  // Announces plans for prepare(), so that compilers may begin, if they do not disturb the
  // measuring.
  virtual void expect(std::span<const KernelPlan> plans) = 0;

  // Makes kernel plans ready to run: builds programs, packs weights. Returns one text for each: "",
  // or why it cannot run (the compiler's message). The plans are numbered on from earlier calls.
  // `has_time`, if set, is called before each plan but the first, on any thread: once it returns
  // false, the rest is not begun, not numbered, and has no text.
  virtual std::vector<std::string> prepare(std::span<const KernelPlan> plans,
                                           const std::function<bool()>& has_time) = 0;

  // Runs plan `number` once on poisoned outputs, and compares with what the network's own kernel
  // wrote. Returns "", or what is wrong.
  virtual std::string verify(size_t number) = 0;

  // Returns the nanoseconds of one execution of plan `number`: the mean of `repeat` in a row, warm.
  // Throws Error{device_failed}.
  virtual double time(size_t number, unsigned repeat) = 0;
};

}  // namespace clinfer
