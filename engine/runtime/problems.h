// Messages that a compiled model has for its users while it runs.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// Collects what CompiledModel::take_problems() gives. Thread-safe.
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
  std::mutex mutex_;  // guards what follows
  std::vector<std::string> texts_;
};

}  // namespace clinfer
