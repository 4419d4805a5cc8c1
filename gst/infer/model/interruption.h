// Ends the waits of a streaming thread while its pads flush.
#pragma once

#include <mutex>
#include <stop_token>

namespace clinfer {

// Thread-safe. Is set initially.
class Interruption {
 public:
  Interruption() { source_.request_stop(); }

  // Ends waits that were begun with an earlier token. Later ones do not block while this is set.
  void set(bool interrupted) {
    const std::lock_guard lock(mutex_);
    if (interrupted)
      source_.request_stop();
    else if (source_.stop_requested())
      source_ = std::stop_source();
  }
  std::stop_token token() const {
    const std::lock_guard lock(mutex_);
    return source_.get_token();
  }

 private:
  mutable std::mutex mutex_;
  std::stop_source source_;
};

}  // namespace clinfer
