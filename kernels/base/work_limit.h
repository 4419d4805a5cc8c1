// When work on the host has to end: operations whose loops may run for long ask now and then.
#pragma once

#include <functional>

namespace clinfer {

// As long as it lives, may_go_on() on this thread calls `ask`, which throws where work is to end.
class WorkLimit {
 public:
  explicit WorkLimit(std::function<void()> ask) : ask_(std::move(ask)), outer_(current_) {
    current_ = this;
  }
  ~WorkLimit() { current_ = outer_; }
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  // Returns, or throws what the innermost limit of this thread throws.
  static void may_go_on() {
    if (current_ != nullptr) current_->ask_();
  }

 private:
  const std::function<void()> ask_;
  WorkLimit* const outer_;
  static inline thread_local WorkLimit* current_ = nullptr;
};

}  // namespace clinfer
