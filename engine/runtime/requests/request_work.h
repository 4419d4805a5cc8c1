// The state that inputs, outputs and the running of one request share: the network, the memory that
// the next inference uses, and the two ways to run it.
#pragma once

#include <memory>
#include <mutex>

#include "engine/runtime/network/device_network.h"
#include "engine/runtime/run/graph_run.h"
#include "engine/runtime/run/in_place.h"
#include "engine/runtime/run/queue_run.h"
#include "engine/runtime/run/request_memory.h"

namespace clinfer {

struct RequestWork {
  RequestWork(std::shared_ptr<const DeviceNetwork> network, DeviceStream& stream);

  const std::shared_ptr<const DeviceNetwork> network;
  DeviceStream& stream;
  std::shared_ptr<RequestMemory> memory;  // of the present or last inference
  const SizedPlan* sized;                 // the plan of the present or last inference
  QueueRun by_queue;
  InPlace in_place;
  std::unique_ptr<GraphRun> by_graph;  // null where the network has no graphs
  PlanRun* run = &by_queue;            // of the present or last inference
  bool running = false;
  bool has_new_kernels = true;  // true if kernels were made since the last inference

  // Throws Error{bad_argument} while an inference is in flight.
  void check_idle() const;
  // Locks the stream for work of this run, which begins after the work of the other kind of run.
  std::unique_lock<std::mutex> take_stream(const PlanRun& of) const;
  std::unique_lock<std::mutex> take_stream() const { return take_stream(*run); }
  std::shared_ptr<RequestMemory> make_memory() const;
  // Returns where a tensor of the whole batch's plan lies.
  BoundBuffer buffer_of(const Edge& edge) const;
};

}  // namespace clinfer
