// Command queues: hints to the driver, and the one queue that exclusive models share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/ocl/va_sharing.h"

namespace clinfer::ocl {

// The hints with which a queue was made. Hints that the device lacks are not applied.
struct QueueHints {
  QueueHint priority = QueueHint::automatic, throttle = QueueHint::automatic;
};

// The hints of `wanted` that the extensions of the device allow; appends one warning for each
// other.
QueueHints applicable_hints(const QueueHints& wanted, const std::string& device_name,
                            const std::string& extensions, std::vector<std::string>& warnings);

// Properties for clCreateCommandQueueWithProperties, ended by 0.
std::vector<cl_queue_properties> queue_properties(const QueueHints& hints, bool profiling);

// An in-order queue on the context's device or a part of it. Throws cl::Error.
cl::CommandQueue create_queue(const Context& context, const cl::Device& device,
                              const QueueHints& hints, bool profiling);

// Exclusive models of a device (and of one VA display, if they are for one) run one after the
// other: they share this context and its one queue, which lives as long as one of them. The first
// one's hints are the queue's.
struct ExclusiveQueue {
  std::shared_ptr<const Context> context;
  cl::CommandQueue queue;
  QueueHints hints;

  static std::shared_ptr<const ExclusiveQueue> of(const DisplayMatch& match,
                                                  const QueueHints& hints);
};

}  // namespace clinfer::ocl
