// Asynchronous inferences with completion callbacks: AsyncRequest runs one at a time, AsyncQueue as many as a device
// takes. This public header is for applications that would rather be called than wait.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "engine/engine.h"

namespace clinfer {

// Called when an inference has ended: with null, and outputs that can be read, or with what wait() would have
// thrown. It runs on a thread of the request's own. It may read outputs, set inputs and start the AsyncRequest
// again; it must not wait for it, nor destroy it. An exception of it ends the process.
using Completed = std::function<void(InferRequest& request, std::exception_ptr error)>;

// A request with a thread that waits for it, once there is somebody to call.
class AsyncRequest {
 public:
  explicit AsyncRequest(std::unique_ptr<InferRequest> request);
  // Ends what is in flight and waits for its call.
  ~AsyncRequest();

  // For setting inputs and reading outputs, by one thread while no inference is in flight, or within the call.
  // Throws Error{bad_argument} at other times.
  InferRequest& request() const;
  // The call from the next start() on; empty: none. Not while an inference is in flight.
  void set_completed(Completed completed);
  // As InferRequest::start(), within the call, too.
  void start(size_t images = 0);
  // Until the inference that is in flight now, and the call about it, are over: then true; false after `timeout`.
  // Throws what the inference failed with. Any thread but that of the call.
  bool wait(std::optional<std::chrono::milliseconds> timeout = {});
  void cancel();  // as InferRequest::cancel()

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// A pool of requests of one model: each inference takes whichever is free.
class AsyncQueue {
 public:
  // `requests`: how many; 0: CompiledModel::optimal_requests().
  explicit AsyncQueue(const std::shared_ptr<CompiledModel>& model, size_t requests = 0);
  // Waits for all that was started.
  ~AsyncQueue();

  size_t size() const;
  // Sleeps until a request is free, lets `fill` set its inputs and starts it; `completed` is called at its end.
  // Any thread, but not within such a call. Throws what `fill` or the start throws; the request is free again
  // then.
  void start(const std::function<void(InferRequest& request)>& fill, Completed completed);
  // Until all that was started is over.
  void wait();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace clinfer
