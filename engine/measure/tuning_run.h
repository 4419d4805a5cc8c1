// Measures the kernels of several operations of a network, once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/measure/candidate_runner.h"
#include "engine/runtime/requests/infer_request.h"
#include "tuning/budget.h"

namespace clinfer {

// A tuning problem, shared by all layers with the same key.
struct TuningProblem {
  std::string op, hash;
  KernelChoice fallback, choice;
  std::vector<KernelChoice> guesses;
  LayerTuning::Source source = LayerTuning::Source::untuned;
  bool has_choice = false, partial = false, measured = false, reverted = false;
  std::string lapsed;
  // The bytes of registers that the first of untuned_candidates() spill, as they were built.
  std::vector<uint64_t> spilled;
  bool settled = false;  // true if the untuned kernel is not to be asked about again
  double ns = 0, default_ns = 0;
  size_t tried = 0;
  std::vector<std::pair<std::string, std::string>> failed;
};

// A problem to measure: a step of the plan, a layer in a loop, or a preprocess kernel.
struct TuningTask {
  static constexpr size_t kNoStep = SIZE_MAX;
  TuningProblem* problem;
  const OpDesc* desc;
  std::string name;
  std::vector<const KernelFamily*> families;
  size_t step = kNoStep;   // the first of its layers that is not in a loop
  int64_t other_runs = 0;  // executions in one inference that are no steps
  double seconds = 0;      // of all its layers in one inference
  double worth = 0;        // decides its turn and its share of a budget
};

// Sets what each task is worth, from its seconds, and sorts them: usually those first that take
// longest. If no shipped record is for this device, so that a cost model alone chose the kernels,
// those whose time may be reduced most, considering the model's uncertainty.
void order_by_worth(std::vector<TuningTask>& tasks, const DeviceTraits& traits);

// To be used once, by one thread.
class TuningRun {
 public:
  // `task_of`: the task of each step of the plan; SIZE_MAX for none. All references must outlive
  // the run.
  TuningRun(const Config& config, const std::shared_ptr<const DeviceNetwork>& network,
            std::vector<TuningTask> tasks, std::vector<size_t> task_of,
            const TuningObserver& observer, const SecondsClock& clock);

  // Measures the tasks, those first that are worth most, until the configured time is over. Sets
  // the choice of each problem, and calls `measured` after each. Throws Error, and Error{cancelled}
  // once the observer has returned false.
  void measure(const std::function<void(const TuningTask&)>& measured);

  bool stopped() const { return stopped_; }  // true if the observer has returned false
  bool changed() const { return changed_; }  // true if a problem has another choice than before
  const TuningStatus& status() const { return status_; }

 private:
  bool go_on();
  void must_go_on();
  void take_times();
  std::vector<KernelChoice> guesses_of(const TuningTask& task);
  void compile_ahead(size_t until);
  void measure_step(const TuningTask& task);
  void measure_trial(const TuningTask& task);
  // Returns false if a trial outside of an inference cannot be set up. Its problem then stays
  // untuned, with the reason.
  bool set_up(const TuningTask& task, const std::function<void()>& trial);
  void measure_task(const TuningTask& task, const CandidateRunner::Find& find);
  void show_progress(const SearchProgress& progress);
  void keep(const TuningTask& task, const SearchResult& result);

  const Config& config_;
  const DeviceNetwork& network_;
  const DeviceTraits& traits_;
  std::vector<TuningTask> tasks_;
  std::vector<size_t> task_of_;
  const TuningObserver& observer_;
  TuningBudget budget_;
  DeviceRequest request_;
  ocl::ProgramBuilder programs_;
  std::function<void(const TuningTask&)> measured_;
  // The best kernels of earlier operations, by type. Often they are the best of the next operation,
  // too.
  std::map<std::string, std::vector<KernelChoice>> winners_;
  size_t wanted_ = 0;  // number of tasks whose kernels are compiled or being compiled
  bool changed_ = false;
  std::mutex mutex_;  // Guards the members below: several threads build, and each calls go_on().
  bool stopped_ = false;
  TuningStatus status_;
};

// Returns the error of a run whose observer has returned false.
Error stopped_error(const Config& config, SourcePlace place = SourcePlace::here());

}  // namespace clinfer
