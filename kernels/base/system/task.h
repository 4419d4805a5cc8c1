// Runs work on a thread of its own. It can be waited for, cancelled, and asked for intermediate
// results.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "kernels/base/system/threads.h"

namespace clinfer {

// Makes a result on a thread of its own. The work may offer other results, which serve until it is
// done. `Result` is a pointer type; null means none. Thread-safe; the task must not be destroyed on
// its own thread.
template <typename Result>
class Task {
 public:
  using Work = std::function<Result(Task&)>;

  // Throws Error{out_of_memory} if no thread can be started.
  explicit Task(Work work)
      : thread_(start_thread<std::jthread>([this, work = std::move(work)] { run(work); })) {}
  // Cancels the work and waits for its end.
  ~Task() { cancel(); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Asks the work to end, by an exception or with its present result.
  void cancel() { cancelled_.request_stop(); }
  bool is_cancelled() const { return cancelled_.stop_requested(); }
  // Returns a token for waits inside of the work that must end when it is cancelled.
  std::stop_token cancelled() const { return cancelled_.get_token(); }

  // Called by the work, on any thread: `result` serves from now on; null: none does until the work
  // is done.
  void offer(Result result) {
    {
      const std::lock_guard lock(mutex_);
      newest_.swap(result);
      has_offered_ = true;
    }
    changed_.notify_all();
  }

  // Returns the last result. Throws the work's exception.
  Result newest() const {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return newest_;
  }
  // Returns whether the work is done, so that newest() does not change any more.
  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  // Blocks until the work is done, and returns its result. Throws the work's exception.
  Result wait() const {
    wait_until({}, [this] { return over_; });
    return newest();
  }
  // Blocks until the work has offered a result or null, is done, or `stop` is requested.
  void wait_for_offer(const std::stop_token& stop) const {
    wait_until(stop, [this] { return over_ || has_offered_; });
  }
  // Blocks until there is a result, it is clear that there will be none, or `stop` is requested.
  void wait_for_result(const std::stop_token& stop) const {
    wait_until(stop, [this] { return over_ || newest_ != nullptr; });
  }
  // Blocks until newest() is another result than `known`, the work is done, or `timeout` has
  // passed.
  void wait_for_change(const Result& known,
                       std::optional<std::chrono::milliseconds> timeout = {}) const {
    const auto is_reached = [&] { return over_ || newest_ != known; };
    if (!timeout) return wait_until({}, is_reached);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, *timeout, is_reached);
  }

 private:
  template <typename Predicate>
  void wait_until(const std::stop_token& stop, const Predicate& is_reached) const {
    std::unique_lock lock(mutex_);
    if (!is_reached()) changed_.wait(lock, stop, is_reached);
  }

  void run(const Work& work) {
    Result made{};  // later the replaced result, which is destroyed after the lock is released
    std::exception_ptr failure;
    try {
      made = work(*this);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      if (!failure) newest_.swap(made);
      failure_ = std::move(failure);
      over_ = true;
    }
    changed_.notify_all();
  }

  std::stop_source cancelled_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::condition_variable_any changed_;
  Result newest_{};
  bool has_offered_ = false, over_ = false;
  std::exception_ptr failure_;
  // Declared last, because its destructor must end the thread before the other members go.
  std::jthread thread_;
};

}  // namespace clinfer
