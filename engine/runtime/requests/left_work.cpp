// Keeps alive what unfinished work of a device uses.
#include "engine/runtime/requests/left_work.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace clinfer {

namespace {

struct Left {
  std::mutex mutex;
  std::vector<std::pair<std::shared_ptr<Completion>, std::shared_ptr<void>>> all;
};

Left& left() {
  static Left* const work = new Left;  // Never destroyed, because the device uses what is in it.
  return *work;
}

bool is_over(Completion& work) {
  try {
    return work.is_over();
  } catch (const cl::Error&) {
    return true;  // the device is lost
  }
}

// Drops all work that is finished. Returns true if nothing is left.
bool nothing_left() {
  std::vector<std::pair<std::shared_ptr<Completion>, std::shared_ptr<void>>>
      gone;  // destroyed after the lock is released
  const std::lock_guard lock(left().mutex);
  auto& all = left().all;
  const auto over = std::partition(all.begin(), all.end(),
                                   [](const auto& work) { return !is_over(*work.first); });
  std::move(over, all.end(), std::back_inserter(gone));
  all.erase(over, all.end());
  return all.empty();
}

}  // namespace

void leave_in_memory(std::shared_ptr<Completion> until, std::shared_ptr<void> used) {
  nothing_left();
  const std::lock_guard lock(left().mutex);
  left().all.emplace_back(std::move(until), std::move(used));
}

bool left_work_is_over(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!nothing_left()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace clinfer
