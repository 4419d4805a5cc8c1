// Streams of CUDA, which run work in order; events; and graphs of launches.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/cuda/kernel.h"

namespace clinfer::cuda {

// A point in a stream.
class Event {
 public:
  // `sleeps`: wait() sleeps; else it may ask again and again, which ends sooner.
  explicit Event(std::shared_ptr<const Device> device, bool sleeps = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns whether the work before the event is over. Throws Failure{device_failed} if that work
  // failed.
  bool is_over() const;
  void wait() const;  // blocks until it is over; throws as above

 private:
  friend class Stream;
  const std::shared_ptr<const Device> device_;
  CUevent event_ = nullptr;
};

// Launches that the device starts by itself, in the order of their dependencies. Only one thread
// may launch the graph at a time.
class Graph {
 public:
  // `after[i]` lists the launches that launch i waits for; all of them come before i in `launches`.
  Graph(std::shared_ptr<const Device> device, std::span<const Launch> launches,
        std::span<const std::vector<size_t>> after);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

 private:
  friend class Stream;
  const std::shared_ptr<const Device> device_;
  CUgraphExec executable_ = nullptr;
};

// A queue whose work runs in order. Only one thread may use it at a time. All functions throw
// Failure{device_failed}.
class Stream {
 public:
  explicit Stream(std::shared_ptr<const Device> device);
  ~Stream();  // does not wait
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Copies to the device. Data in memory that is not pinned are read before the call returns.
  void write(CUdeviceptr to, const void* from, size_t bytes) const;
  // Copies to the host. The caller keeps the memory until the copy is over.
  void read(void* to, CUdeviceptr from, size_t bytes) const;
  void launch(const Launch& launch) const;
  void launch(const Graph& graph) const;
  void record(Event& event) const;
  void wait_for(const Event& event) const;  // the stream waits, not the host
  void finish() const;                      // the host waits
  // Calls `function` on a thread of the driver once all work so far is over. The function may not
  // call CUDA.
  void call_when_over(std::function<void()> function) const;

 private:
  const std::shared_ptr<const Device> device_;
  CUstream stream_ = nullptr;
};

}  // namespace clinfer::cuda
