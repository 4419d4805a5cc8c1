// Collects messages for users of a compiled model while it runs.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// The messages that CompiledModel::take_problems() returns. Thread-safe.
class Problems {
 public:
  void add(std::string problem) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(problem));
    any_ = true;
  }
  std::vector<std::string> take() {
    if (!any_) return {};
    const std::lock_guard lock(mutex_);
    any_ = false;
    return std::exchange(texts_, {});
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;  // guards the members below
  std::vector<std::string> texts_;
};

}  // namespace clinfer
