// Implements the threads that wait for requests, and the pool of requests.
#include "engine/async.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/base/system/threads.h"

namespace clinfer {

struct AsyncRequest::State {
  explicit State(std::unique_ptr<InferRequest> of) : request(std::move(of)) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    request->cancel();
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  bool in_call() const { return std::this_thread::get_id() == calling; }
  // Does nothing without a thread, since the request checks itself then.
  void check_idle() const {
    if (started != over && !in_call())
      throw Error(ErrorCode::bad_argument, "the request is in flight; wait() first");
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ends || started != over; });
      if (started == over) return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        request->wait();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      error = failure;
      const Completed call = completed;
      if (call) {
        calling = std::this_thread::get_id();
        lock.unlock();
        call(*request, failure);
        lock.lock();
        calling = {};
      }
      ++over;
      changed.notify_all();
    }
  }

  const std::unique_ptr<InferRequest> request;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  Completed completed;
  uint64_t started = 0, over = 0;  // numbers of inferences
  std::thread::id calling;         // the thread, while it runs the callback
  std::exception_ptr error;        // of the last inference
  bool ends = false;
  std::thread thread;
};

AsyncRequest::AsyncRequest(std::unique_ptr<InferRequest> request)
    : state_(std::make_unique<State>(std::move(request))) {}

AsyncRequest::~AsyncRequest() = default;

InferRequest& AsyncRequest::request() const {
  const std::lock_guard lock(state_->mutex);
  state_->check_idle();
  return *state_->request;
}

void AsyncRequest::set_completed(Completed completed) {
  const std::lock_guard lock(state_->mutex);
  state_->check_idle();
  if (completed && !state_->thread.joinable()) {
    state_->request->wait();  // waits for an inference that was started without a thread
    state_->thread = start_thread([state = state_.get()] { state->work(); });
  }
  state_->completed = std::move(completed);
}

void AsyncRequest::start(size_t images) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->check_idle();
    if (state_->ends) throw Error(ErrorCode::cancelled, "the request is being destroyed");
    state_->request->start(images);
    if (state_->thread.joinable()) ++state_->started;
  }
  state_->changed.notify_all();
}

bool AsyncRequest::wait(std::optional<std::chrono::milliseconds> timeout) {
  std::unique_lock lock(state_->mutex);
  if (!state_->thread.joinable()) {
    lock.unlock();
    return state_->request->wait(timeout);
  }
  if (state_->in_call())
    throw Error(ErrorCode::bad_argument, "a request cannot be waited for within its own call");
  const uint64_t wanted = state_->started;
  const auto is_over = [&] { return state_->over >= wanted; };
  if (timeout && !state_->changed.wait_for(lock, *timeout, is_over)) return false;
  state_->changed.wait(lock, is_over);
  if (state_->error != nullptr && state_->over == wanted)
    std::rethrow_exception(std::exchange(state_->error, nullptr));
  return true;
}

void AsyncRequest::cancel() { state_->request->cancel(); }

struct AsyncQueue::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<AsyncRequest*> idle;
  // Destroyed first, because their callbacks use the other members.
  std::vector<std::unique_ptr<AsyncRequest>> all;

  void give_back(AsyncRequest* request) {
    {
      const std::lock_guard lock(mutex);
      idle.push_back(request);
    }
    changed.notify_all();
  }
};

AsyncQueue::AsyncQueue(const std::shared_ptr<CompiledModel>& model, size_t requests)
    : state_(std::make_unique<State>()) {
  if (requests == 0) requests = model->optimal_requests();
  for (size_t i = 0; i < requests; ++i) {
    state_->all.push_back(std::make_unique<AsyncRequest>(model->create_request()));
    state_->idle.push_back(state_->all.back().get());
  }
}

AsyncQueue::~AsyncQueue() { wait(); }

size_t AsyncQueue::size() const { return state_->all.size(); }

void AsyncQueue::start(const std::function<void(InferRequest& request)>& fill,
                       Completed completed) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->idle.empty(); });
  AsyncRequest* const request = state_->idle.back();
  state_->idle.pop_back();
  lock.unlock();
  try {
    request->wait();  // until its thread has returned from the callback that gave it back
  } catch (const std::exception&) {
    // The error was reported to the callback.
  }
  try {
    fill(request->request());
    request->set_completed([state = state_.get(), request, completed = std::move(completed)](
                               InferRequest& done, std::exception_ptr error) {
      if (completed) completed(done, std::move(error));
      state->give_back(request);
    });
    request->start();
  } catch (...) {
    state_->give_back(request);
    throw;
  }
}

void AsyncQueue::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->idle.size() == state_->all.size(); });
}

}  // namespace clinfer
