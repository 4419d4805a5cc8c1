// Keeps a record of the process, which is never destroyed.
#include "kernels/base/system/leaving.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "kernels/base/error.h"

namespace clinfer {

namespace {

constexpr auto kLongestWait = std::chrono::seconds(10);
// The time between two handlers that the watcher registers, and how many it registers in the life
// of a process. While the libraries of drivers are loaded, LLVM's constructors register thousands
// in some milliseconds, and go on to use what these destroy: the first handlers follow each other
// closely. Drivers register more when they compile for the first time; 20 s of loading cover that,
// and an application that loads models for months keeps no more than these.
constexpr auto kRegisterSoon = std::chrono::microseconds(20);
constexpr auto kRegisterAgain = std::chrono::milliseconds(2);
constexpr unsigned kFirstHandlers = 5'000, kMostHandlers = kFirstHandlers + 10'000;

thread_local size_t works_here = 0;  // of this thread

}  // namespace

struct ExitWaits::Process {
  // A fork of the process has none of its threads, so it gets a new record.
  static Process& instance() {
    Process* now = current();
    if (now->id == getpid()) return *now;
    auto* fresh = new Process;
    fresh->stop = now->stop.load();
    fresh->forked_from = now;
    if (current().compare_exchange_strong(now, fresh)) return *fresh;
    delete fresh;
    return *now;
  }

  static void leave() {
    Process& process = *current();
    if (process.id != getpid()) return;  // a fork, which does not have the threads
    {
      const std::lock_guard lock(process.mutex);
      if (process.leaving.exchange(true)) return;  // the wait is over already
      process.leaver = std::this_thread::get_id();
    }
    if (void (*const stop)() = process.stop) stop();
    std::unique_lock lock(process.mutex);
    process.changed.wait(lock, [&] { return process.to_the_end == 0; });
    // A thread that ends the process from inside of such work does not wait for its own work.
    process.changed.wait_for(lock, kLongestWait, [&] { return process.works <= works_here; });
  }

  // Starts the watcher, with `mutex` locked. A process that gets no thread goes without it.
  void watch() {
    if (watching || handlers == kMostHandlers) return;
    try {
      std::thread([this] { register_while_watched(); }).detach();
      watching = true;
    } catch (const std::system_error&) {
    }
  }

  // Registers handlers, so that one of ours is always younger than those of a driver, which exit()
  // on another thread than the first one would run first.
  void register_while_watched() {
    std::unique_lock lock(mutex);
    const auto is_over = [this] { return watched == 0 || leaving; };
    while (!is_over() && handlers < kMostHandlers) {
      ++handlers;
      lock.unlock();
      std::atexit(leave);
      lock.lock();
      const bool soon = handlers < kFirstHandlers;
      changed.wait_for(lock, soon ? kRegisterSoon : kRegisterAgain, is_over);
    }
    watching = false;
  }

  static std::atomic<Process*>& current() {
    static std::atomic<Process*>& all = *new std::atomic<Process*>(new Process);
    return all;
  }

  const pid_t id = getpid();
  Process* forked_from = nullptr;  // copies of objects that the fork inherited still use it
  std::atomic<bool> leaving{false};
  std::atomic<void (*)()> stop{nullptr};
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::thread::id leaver;
  size_t to_the_end = 0, works = 0;
  size_t watched = 0;  // works that call drivers which may register handlers
  bool watching = false;
  unsigned handlers = 0;  // registered by the watcher

  // exit() destroys its thread's thread_local objects before it calls any handler. So this
  // destructor runs before the handlers and destructors of drivers, whenever they were registered,
  // if the process is ended by its first thread, as by returning from main(). In other threads it
  // runs at the thread's end and does nothing.
  struct FirstOfAll {
    bool made = true;
    ~FirstOfAll() {
      if (gettid() == getpid()) leave();
    }
  };
  static bool be_first_of_all() {
    thread_local FirstOfAll first;
    return first.made;
  }
};

ExitWaits::ExitWaits(Until until) : process_(&Process::instance()), until_(until) {
  Process::be_first_of_all();
  const std::lock_guard lock(process_->mutex);
  if (process_->leaving && process_->leaver != std::this_thread::get_id())
    throw Error(ErrorCode::cancelled, "the process ends");
  if (until_ == Until::to_the_end) {
    ++process_->to_the_end;
  } else {
    ++process_->works;
    if (until_ == Until::seconds) ++works_here;
  }
  if (until_ == Until::answered) return;
  ++process_->watched;
  process_->watch();
}

ExitWaits::~ExitWaits() {
  const std::lock_guard lock(process_->mutex);
  if (until_ == Until::to_the_end) {
    --process_->to_the_end;
  } else {
    --process_->works;
    if (until_ == Until::seconds) --works_here;
  }
  if (until_ != Until::answered) --process_->watched;
  process_->changed.notify_all();
}

bool is_leaving() { return ExitWaits::Process::instance().leaving; }

void notice_exit() {
  ExitWaits::Process::be_first_of_all();
  std::atexit(ExitWaits::Process::leave);
}

void when_leaving(void (*stop)()) { ExitWaits::Process::instance().stop = stop; }

namespace {

// Runs on the thread that loads this code, usually the first one.
[[maybe_unused]] const bool is_noticed = (notice_exit(), true);

}  // namespace

}  // namespace clinfer
