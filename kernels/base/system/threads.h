// Starts threads and handles failures to start them: users and containers have thread limits.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/system/processors.h"

namespace clinfer {

// Returns the error for a system that starts no thread, with advice.
inline Error no_more_threads(SourcePlace place = SourcePlace::here()) {
  return {
      ErrorCode::out_of_memory,
      "no more threads can be started: the user's limit (ulimit -u), the container's (pids.max) "
      "or memory is used up; raise it, or end other programs",
      place};
}

// Starts a std::thread or std::jthread that runs `work`. Throws Error{out_of_memory} with advice if
// the system starts no thread.
template <typename Thread = std::thread, typename Work>
Thread start_thread(Work&& work) {
  try {
    return Thread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    throw no_more_threads();
  }
}

// Runs work() on up to `threads` threads at a time, including the calling one, or on fewer if the
// system starts no more. `work` must not throw.
template <typename Work>
void on_threads(size_t threads, const Work& work) {
  std::vector<std::jthread> others;
  try {
    others.reserve(threads);
    while (others.size() + 1 < threads) others.emplace_back(work);
  } catch (const std::exception&) {
    // Continues with the threads that were started.
  }
  work();
}

// Runs f(i) for 0 <= i < n on up to `threads` threads (0: one per core). Rethrows the first
// exception.
template <typename F>
void parallel_for(size_t n, unsigned threads, const F& f) {
  if (threads == 0) threads = available_processors();
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  on_threads(std::min<size_t>(threads, n), [&] {
    try {
      for (size_t i; (i = next++) < n;) f(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = n;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace clinfer
