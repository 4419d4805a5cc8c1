// A thread for each device; what is ready before the wanted device is offered to the application.
#include "engine/devices/compile_all.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/compile/model_compiler.h"
#include "kernels/base/threads.h"

namespace clinfer {

namespace {

// One run of CompileAll.
class Run {
 public:
  explicit Run(const CompileAll& what) : what_(what), results_(what.configs.size()) {}

  std::vector<CompiledFor> run() {
    {
      std::vector<std::jthread> threads;
      try {
        for (size_t i = 1; i < results_.size(); ++i)
          threads.push_back(start_thread<std::jthread>([this, i] { compile(i); }));
      } catch (...) {
        refused_ = true;  // those that were started end soon
        note_host_settled();
        throw;
      }
      compile(0);
    }
    if (refused_) throw Error(ErrorCode::cancelled, "compiling was cancelled");
    for (const CompiledFor& result : results_)
      if (result.model) return std::move(results_);
    std::rethrow_exception(results_[0].error);
  }

 private:
  void compile(size_t index) {
    CompiledFor& result = results_[index];
    result.device = what_.configs[index].device;
    if (index + 1 != results_.size()) wait_for_host();
    try {
      // Whichever device is ready before the others may need the host until then: the last one, which
      // is the one that is wanted least.
      FirstTier first;
      if (what_.first_tier && index + 1 == results_.size())
        first = [this](std::shared_ptr<CompiledModel> model, const std::string& why_not) {
          offer(std::move(model), why_not, results_.size());
          note_host_settled();
        };
      result.model = compile_for_device(
          what_.model, what_.configs[index],
          [this](const std::string& what, size_t done, size_t of) { return go_on(what, done, of); },
          {}, first);
    } catch (...) {
      result.error = std::current_exception();
    }
    if (is_needed_after(index)) offer(result.model, "", index);
  }

  // Compilers for the other devices would take the processor from the host's first result, which is a
  // matter of milliseconds: they begin after it is on its way, or it is clear that there is none.
  void wait_for_host() {
    const Config& last = what_.configs.back();
    if (!what_.first_tier || !last.first_tier || last.perf_count) return;
    std::unique_lock lock(mutex_);
    host_settled_changed_.wait(lock, [this] { return host_settled_; });
  }
  void note_host_settled() {
    {
      const std::lock_guard lock(mutex_);
      host_settled_ = true;
    }
    host_settled_changed_.notify_all();
  }

  // Notes that a device has finished compiling. Returns whether its model serves until others are ready.
  bool is_needed_after(size_t index) {
    if (index + 1 == results_.size()) note_host_settled();
    const std::lock_guard lock(mutex_);
    ended_[index] = true;
    if (what_.one_is_enough && !what_.first_tier && results_[index].model) enough_ = true;
    for (size_t i = 0; what_.one_is_enough && i < ended_.size() && ended_[i]; ++i)
      if (results_[i].model) enough_ = true;
    const bool last = std::find(ended_.begin(), ended_.end(), false) == ended_.end();
    return results_[index].model && !last && !enough_;
  }

  bool go_on(const std::string& what, size_t done, size_t of) {
    if (enough_ || refused_) return false;
    if (!what_.progress) return true;
    const std::lock_guard lock(mutex_);
    if (!what_.progress(what, done, of)) refused_ = true;
    return !refused_;
  }

  // Hands a model over unless a better one was; smaller ranks are better.
  void offer(std::shared_ptr<CompiledModel> model, const std::string& why_not, size_t rank) {
    if (!what_.first_tier) return;
    const std::lock_guard lock(offering_);
    if (enough_ || refused_ || rank >= best_offered_) return;
    if (model) best_offered_ = rank;
    try {
      what_.first_tier(std::move(model), why_not);
    } catch (...) {
      // As for one device: the final model comes anyway.
    }
  }

  const CompileAll& what_;
  std::vector<CompiledFor> results_;
  std::atomic<bool> enough_{false}, refused_{false};
  std::mutex mutex_;  // one call of `progress` at a time; guards what follows
  bool host_settled_ = false;
  std::condition_variable host_settled_changed_;
  std::vector<bool> ended_ = std::vector<bool>(results_.size());
  std::mutex offering_;  // one call of `first_tier` at a time; guards what follows
  size_t best_offered_ = SIZE_MAX;
};

}  // namespace

std::vector<CompiledFor> CompileAll::run() const { return Run(*this).run(); }

std::string message_of(const std::exception_ptr& error) try {
  std::rethrow_exception(error);
} catch (const std::exception& known) {
  return known.what();
} catch (...) {
  return "an unknown error";
}

}  // namespace clinfer
