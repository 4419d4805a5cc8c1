// Compiles on a task for each device, and offers what is ready before the wanted device.
#include "engine/compile/compile_all.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "engine/compile/model_compiler.h"
#include "kernels/base/system/task.h"

namespace clinfer {

namespace {

// The state of one CompileAll::run().
class Run {
 public:
  explicit Run(const CompileAll& what) : what_(what), results_(what.configs.size()) {}
  ~Run() {
    // Ends tasks_.front() last, since the others wait for it.
    while (!tasks_.empty()) tasks_.pop_back();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  std::vector<CompiledFor> run() {
    for (size_t i = results_.size(); i-- > 1;)
      tasks_.push_back(std::make_unique<DeviceTask>([this, i](DeviceTask& task) {
        compile(i, &task);
        return results_[i].model;
      }));
    compile(0, nullptr);
    for (const auto& task : tasks_) task->wait();
    if (refused_) throw Error(ErrorCode::cancelled, "compiling was cancelled");
    for (const CompiledFor& result : results_)
      if (result.model) return std::move(results_);
    std::rethrow_exception(results_[0].error);
  }

 private:
  using DeviceTask = Task<std::shared_ptr<DeviceModel>>;

  // Compiles for one device. `task` is the device's own; null for the first device, which the
  // calling thread compiles.
  void compile(size_t index, DeviceTask* task) {
    CompiledFor& result = results_[index];
    result.device = what_.configs[index].device;
    const bool is_last = index + 1 == results_.size();
    if (!is_last) wait_for_host(task);
    try {
      // The last device, which is wanted least, also offers the first tier: until a device is
      // ready, the host may serve.
      Offer first;
      if (what_.offer && is_last)
        first = [this, task](std::shared_ptr<CompiledModel> model) {
          offer(std::move(model), results_.size());
          if (task) task->offer(nullptr);  // tells the others not to wait for the host any more
        };
      result.model = compile_for_device(
          what_.model, what_.configs[index],
          [&](const std::string& what, size_t done, size_t of) {
            return !(task && task->is_cancelled()) && go_on(what, done, of);
          },
          {}, first);
    } catch (...) {
      result.error = std::current_exception();
    }
    if (is_needed_after(index)) offer(result.model, index);
  }

  // Waits until the first tier is offered, or it is clear that there will be none. Compilers for
  // the other devices would take processor time from the first tier, which is a matter of
  // milliseconds.
  void wait_for_host(const DeviceTask* task) {
    const Config& last = what_.configs.back();
    if (!what_.offer || !last.has_first_tier() || last.perf_count) return;
    tasks_.front()->wait_for_offer(task ? task->cancelled() : std::stop_token());
  }

  // Notes that a device has finished compiling. Returns whether its model is needed until others
  // are ready.
  bool is_needed_after(size_t index) {
    const std::lock_guard lock(mutex_);
    ended_[index] = true;
    if (what_.one_is_enough && !what_.offer && results_[index].model) enough_ = true;
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

  // Hands a model over, unless a better one was handed over before; smaller ranks are better.
  void offer(std::shared_ptr<CompiledModel> model, size_t rank) {
    if (!what_.offer || !model) return;
    const std::lock_guard lock(offering_);
    if (enough_ || refused_ || rank >= best_offered_) return;
    best_offered_ = rank;
    what_.offer(std::move(model));
  }

  const CompileAll& what_;
  std::vector<CompiledFor> results_;
  std::atomic<bool> enough_{false}, refused_{false};
  std::mutex mutex_;  // serialises calls of `progress`; guards the members below
  std::vector<bool> ended_ = std::vector<bool>(results_.size());
  std::mutex offering_;  // serialises offers; guards the members below
  size_t best_offered_ = SIZE_MAX;
  std::vector<std::unique_ptr<DeviceTask>> tasks_;  // from the last device to the second
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
