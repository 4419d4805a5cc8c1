// Streams of CUDA: work in order, graphs of launches, and events.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/cuda/kernel.h"

namespace clinfer::cuda {

// A point in a stream.
class Event {
 public:
  explicit Event(std::shared_ptr<const Device> device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns whether what was before it is over. Throws Failure{device_failed} where that failed.
  bool is_over() const;
  void wait() const;  // likewise

 private:
  friend class Stream;
  const std::shared_ptr<const Device> device_;
  CUevent event_ = nullptr;
};

// Launches that the device starts by itself. Launched by one thread at a time.
class Graph {
 public:
  // `after[i]`: the launches that launch i waits for, each before it in the list.
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

// A queue of work that runs in order. Of one thread at a time; all functions throw Failure{device_failed}.
class Stream {
 public:
  explicit Stream(std::shared_ptr<const Device> device);
  ~Stream();  // does not wait
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Copies to the device. Data of memory that is not pinned are taken before the call returns.
  void write(CUdeviceptr to, const void* from, size_t bytes) const;
  // The memory is kept until that is over.
  void read(void* to, CUdeviceptr from, size_t bytes) const;
  void launch(const Launch& launch) const;
  void launch(const Graph& graph) const;
  void record(Event& event) const;
  void wait_for(const Event& event) const;  // the stream waits, not the host
  void finish() const;                      // the host waits
  // Calls it on a thread of the driver once all work so far is over. It may not call CUDA.
  void call_when_over(std::function<void()> function) const;

 private:
  const std::shared_ptr<const Device> device_;
  CUstream stream_ = nullptr;
};

}  // namespace clinfer::cuda
