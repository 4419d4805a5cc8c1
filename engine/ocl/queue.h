// Command queues: their hints to the driver, and the one queue that exclusive models share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/ocl/va_sharing.h"

namespace clinfer::ocl {

// The hints with which a queue was made. Hints that the device does not support are left out.
struct QueueHints {
  QueueHint priority = QueueHint::automatic, throttle = QueueHint::automatic;
};

// Returns those hints of `wanted` that the device's extensions support, and appends a warning for
// each other one.
QueueHints applicable_hints(const QueueHints& wanted, const std::string& device_name,
                            const std::string& extensions, std::vector<std::string>& warnings);

// Returns properties for clCreateCommandQueueWithProperties, ended by 0.
std::vector<cl_queue_properties> queue_properties(const QueueHints& hints, bool profiling);

// Makes an in-order queue on the context's device or a part of it. Throws cl::Error.
cl::CommandQueue create_queue(const Context& context, const cl::Device& device,
                              const QueueHints& hints, bool profiling);

// A context and its one queue, which exclusive models of a device (and of one VA display, if they
// have one) share, so that they run one after the other. It lives as long as one of them. The first
// model determines the hints.
struct ExclusiveQueue {
  std::shared_ptr<const Context> context;
  cl::CommandQueue queue;
  QueueHints hints;

  static std::shared_ptr<const ExclusiveQueue> of(const DisplayMatch& match,
                                                  const QueueHints& hints);
};

}  // namespace clinfer::ocl
