// Asynchronous inferences with completion callbacks: AsyncRequest runs one at a time, AsyncQueue as
// many as a device takes. This public header is for applications that want callbacks instead of
// waiting.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "engine/engine.h"

namespace clinfer {

// Called when an inference has ended. `error` is null if outputs can be read, else what wait()
// would have thrown. Runs on a thread of the request. May read outputs, set inputs and start the
// AsyncRequest again; must not wait for it or destroy it. An exception that leaves the callback
// ends the process.
using Completed = std::function<void(InferRequest& request, std::exception_ptr error)>;

// A request with a thread that waits for its inferences. The thread exists once there is a
// callback.
class AsyncRequest {
 public:
  explicit AsyncRequest(std::unique_ptr<InferRequest> request);
  // Cancels the inference in flight and waits for its callback.
  ~AsyncRequest();

  // Returns the request, for setting inputs and reading outputs: by one thread while no inference
  // is in flight, or within the callback. Throws Error{bad_argument} at other times.
  InferRequest& request() const;
  // Sets the callback from the next start() on; empty: none. To be called while no inference is in
  // flight.
  void set_completed(Completed completed);
  // Starts as InferRequest::start() does; may be called within the callback.
  void start(size_t images = 0);
  // Waits until the inference in flight and its callback are over. Returns true then, false after
  // `timeout`. Throws what the inference failed with. Any thread may call this, but not the
  // callback.
  bool wait(std::optional<std::chrono::milliseconds> timeout = {});
  void cancel();  // see InferRequest::cancel()

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// A pool of requests of one model. Each inference takes a free one.
class AsyncQueue {
 public:
  // `requests`: how many to make; 0: CompiledModel::optimal_requests().
  explicit AsyncQueue(const std::shared_ptr<CompiledModel>& model, size_t requests = 0);
  // Waits for all inferences that were started.
  ~AsyncQueue();

  size_t size() const;
  // Blocks until a request is free, lets `fill` set its inputs and starts it; `completed` is called
  // when it ends. Any thread may call this, but not a callback. Throws what `fill` or the start
  // throws; the request is free again then.
  void start(const std::function<void(InferRequest& request)>& fill, Completed completed);
  // Blocks until all inferences that were started are over.
  void wait();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace clinfer
