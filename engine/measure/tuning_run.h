// One run of measurements: the kernels of several operations, on a bench.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/measure/bench.h"
#include "engine/measure/candidate_runner.h"
#include "engine/runtime/infer_request.h"
#include "tuning/budget.h"

namespace clinfer {

// One tuning problem, shared by the layers with its key.
struct TuningProblem {
  std::string op, hash;
  KernelChoice fallback, choice;
  std::vector<KernelChoice> guesses;
  LayerTuning::Source source = LayerTuning::Source::untuned;
  bool has_choice = false, partial = false, measured = false, reverted = false;
  std::string lapsed;
  double ns = 0, default_ns = 0;
  size_t tried = 0;
  std::vector<std::pair<std::string, std::string>> failed;
};

// A problem to be measured: a step of the plan, a layer in a loop or a preprocess kernel.
struct TuningTask {
  static constexpr size_t kNoStep = SIZE_MAX;
  TuningProblem* problem;
  const OpDesc* desc;
  std::string name;
  std::vector<const KernelFamily*> families;
  size_t step = kNoStep;   // the first of its layers outside of loops
  int64_t other_runs = 0;  // in one inference, of what is no step
  double seconds = 0;      // of all its layers in one inference
  double worth = 0;        // decides its turn and its share of a budget
};

// Sets what each task is worth, by its seconds, and puts those first that are worth most: those that
// take longest. Where no shipped record is of the device, so that a model of times alone chose the
// kernels, those of whose time most may be saved by the doubt of that model.
void order_by_worth(std::vector<TuningTask>& tasks, const DeviceTraits& traits);

// Used once, by one thread.
class TuningRun {
 public:
  // `task_of`: the task of each step of the plan, SIZE_MAX for none. All references outlive the run.
  TuningRun(const Config& config, const Bench& bench, std::vector<TuningTask> tasks,
            std::vector<size_t> task_of, const TuningObserver& observer, const SecondsClock& clock);

  // Measures the tasks, those first that are worth most, until the time of the configuration is over.
  // Sets the choice of each problem, and calls `measured` after each. Throws Error, and
  // Error{cancelled} once the observer has said no.
  void measure(const std::function<void(const TuningTask&)>& measured);

  bool stopped() const { return stopped_; }  // the observer has said no
  bool changed() const { return changed_; }  // a problem has another choice than before
  const TuningStatus& status() const { return status_; }

 private:
  bool go_on();
  void must_go_on();
  void take_times();
  std::vector<KernelChoice> guesses_of(const TuningTask& task);
  const PersistentPart* part_of(const TuningTask& task) const;
  void compile_ahead(size_t until);
  void measure_step(const TuningTask& task);
  void measure_trial(const TuningTask& task);
  // False where a trial outside of an inference cannot be set up: its problem stays untuned, with
  // the reason.
  bool set_up(const TuningTask& task, const std::function<void()>& trial);
  void measure_task(const TuningTask& task, const CandidateRunner::Find& find);
  void show_progress(const SearchProgress& progress);
  void keep(const TuningTask& task, const SearchResult& result);

  const Config& config_;
  const Bench& bench_;
  const DeviceNetwork& network_;
  const DeviceTraits& traits_;
  const PersistentPart persistent_;
  std::vector<TuningTask> tasks_;
  std::vector<size_t> task_of_;
  const TuningObserver& observer_;
  TuningBudget budget_;
  DeviceRequest request_;
  ocl::ProgramBuilder programs_;
  std::function<void(const TuningTask&)> measured_;
  // The best kernels of earlier operations, by type: often they are the best of the next one too.
  std::map<std::string, std::vector<KernelChoice>> winners_;
  size_t wanted_ = 0;  // tasks whose kernels are compiled or on their way
  bool changed_ = false;
  std::mutex mutex_;  // guards what follows: builds run on several threads, each asks go_on()
  bool stopped_ = false;
  TuningStatus status_;
};

// The error that ends a run whose observer said no.
Error stopped_error(const Config& config, SourcePlace place = SourcePlace::here());

}  // namespace clinfer
