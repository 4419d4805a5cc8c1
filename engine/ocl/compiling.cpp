// Threads that compile, and the end of the process.
#include "engine/ocl/compiling.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/ocl/compiler_pool.h"

namespace clinfer::ocl {

namespace {

class Compiling {
 public:
  // Never destroyed. A fork of the process has none of its threads, and begins anew.
  static Compiling& instance() {
    Compiling* now = current();
    if (now->process_ == getpid()) return *now;
    auto* fresh = new Compiling;
    if (current().compare_exchange_strong(now, fresh)) return *fresh;
    delete fresh;
    return *now;
  }

  bool start(std::function<void()> work) {
    wait_at_exit();
    const std::lock_guard lock(mutex_);
    if (leaving_) return false;
    try {
      std::thread([work = std::move(work), this]() mutable {
        work();
        work = nullptr;  // what it holds goes before the process may
        const std::lock_guard ended(mutex_);
        if (--threads_ == 0) idle_.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++threads_;
    return true;
  }

  void wait_at_exit() {
    std::atexit([] {
      Compiling& compiling = *current();
      if (compiling.process_ != getpid()) return;  // a fork: the threads are not here
      compiling.leaving_ = true;
      CompilerPool::stop_all();
      std::unique_lock lock(compiling.mutex_);
      compiling.idle_.wait(lock, [&] { return compiling.threads_ == 0; });
    });
  }

  bool leaving() const { return leaving_; }

 private:
  static std::atomic<Compiling*>& current() {
    static std::atomic<Compiling*>& all = *new std::atomic<Compiling*>(new Compiling);
    return all;
  }
  const pid_t process_ = getpid();
  std::atomic<bool> leaving_{false};
  std::mutex mutex_;
  std::condition_variable idle_;
  size_t threads_ = 0;
};

}  // namespace

bool start_compiling(std::function<void()> work) {
  return Compiling::instance().start(std::move(work));
}

void wait_for_compilers_at_exit() { Compiling::instance().wait_at_exit(); }

bool is_leaving() { return Compiling::instance().leaving(); }

}  // namespace clinfer::ocl
