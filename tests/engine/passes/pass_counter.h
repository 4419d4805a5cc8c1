// Counts which passes run, by what the engine logs.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "engine/passes/passes.h"
#include "kernels/base/log.h"

namespace clinfer::test {

// For its life it takes the engine's messages. Passes may run on several threads.
class PassCounter final : public LogReceiver {
 public:
  PassCounter() { receive_log(this); }
  ~PassCounter() override { receive_log(nullptr); }
  PassCounter(const PassCounter&) = delete;
  PassCounter& operator=(const PassCounter&) = delete;

  bool wants(LogArea area, LogLevel) const noexcept override { return area == LogArea::graph; }
  void take(LogArea, LogLevel, const SourcePlace&, const std::string& text) noexcept override {
    const std::lock_guard lock(mutex_);
    ++runs_[text.substr(0, text.find(':'))];
  }

  // Of one pass, or of all, since the last call.
  size_t take_runs(const std::string& pass = "") {
    const std::lock_guard lock(mutex_);
    size_t runs = 0;
    for (const Pass& known : passes())
      if (pass.empty() || known.name == pass) runs += runs_[known.name];
    runs_.clear();
    return runs;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> runs_;
};

}  // namespace clinfer::test
