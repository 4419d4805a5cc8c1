// Measures operations, first those where the most time may be saved.
#include "engine/measure/tuning_run.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/measure/clock.h"
#include "engine/measure/noise.h"
#include "engine/measure/trial_picture.h"
#include "engine/measure/trial_tensors.h"
#include "kernels/frames/preprocess.h"
#include "tuning/shipped.h"
#include "tuning/tuner.h"

namespace clinfer {

namespace {

constexpr int kTimedRuns = 3;
constexpr size_t kAhead = 4;      // number of operations whose kernels are compiled in advance
constexpr size_t kRelatives = 6;  // number of earlier operations whose best points a search tries

// Returns memory for an operation that no step of the plan computes.
CandidateRunner::Find trial_memory(const ocl::Context& context, const TuningTask& task) {
  if (task.families.front() == &kPreprocessFamily)
    return [picture = std::make_shared<const TrialPicture>(context, *task.desc)](
               const Argument& argument) { return picture->find(argument); };
  return [tensors = std::make_shared<const TrialTensors>(context, *task.desc)](
             const Argument& argument) { return tensors->find(argument); };
}

// Runs the untuned kernel there. Returns the seconds of one execution, as the mean of `repeat`.
double run_trial(const DeviceNetwork& network, const TuningTask& task,
                 const CandidateRunner::Find& find, int repeat) {
  const KernelChoice& choice = task.problem->fallback;
  const KernelPlan plan = choice.family->plan(*task.desc, network.traits, choice.point);
  const cl::Context& context = network.context->context;
  std::vector<cl::Buffer> packed;
  for (const auto& make : plan.packed) {
    std::vector<std::byte> bytes = make();
    bytes.resize(std::max<size_t>(bytes.size(), 4));
    packed.emplace_back(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes.size(),
                        bytes.data());
  }
  const cl::Buffer workspace(context, CL_MEM_READ_WRITE, std::max<size_t>(plan.workspace, 4));
  std::vector<cl::Kernel> kernels;
  for (const KernelSpec& spec : plan.launches) {
    kernels.push_back(network.extra_kernel(spec));
    bind_arguments(kernels.back(), spec, [&](const Argument& argument) -> BoundBuffer {
      if (argument.kind == Argument::Kind::packed) return {packed.at(argument.index), 0};
      if (argument.kind == Argument::Kind::workspace) return {workspace, 0};
      return find(argument);
    });
  }
  const cl::CommandQueue& queue = network.stream(0).queue;
  const auto begin = Clock::now();
  for (int i = 0; i < repeat; ++i)
    for (size_t l = 0; l < kernels.size(); ++l) enqueue(queue, kernels[l], plan.launches[l]);
  queue.finish();
  return seconds_since(begin) / repeat;
}

double seconds_of_trial(const DeviceNetwork& network, const TuningTask& task) {
  const CandidateRunner::Find find = trial_memory(*network.context, task);
  run_trial(network, task, find, 1);  // builds it
  return run_trial(network, task, find, kTimedRuns);
}

}  // namespace

Error stopped_error(const Config& config, SourcePlace place) {
  return Error(ErrorCode::cancelled,
               "tuning was stopped; what was measured is in " + config.tuning_file +
                   ", TUNING_CREATE goes on from there",
               place);
}

void order_by_worth(std::vector<TuningTask>& tasks, const DeviceTraits& traits) {
  const bool is_known = has_shipped_records(traits);
  for (TuningTask& task : tasks) {
    task.worth = task.seconds;
    if (!is_known) task.worth *= expected_gain(task.problem->fallback, *task.desc, traits);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const TuningTask& a, const TuningTask& b) { return a.worth > b.worth; });
}

TuningRun::TuningRun(const Config& config, const std::shared_ptr<const DeviceNetwork>& network,
                     std::vector<TuningTask> tasks, std::vector<size_t> task_of,
                     const TuningObserver& observer, const SecondsClock& clock)
    : config_(config),
      network_(*network),
      traits_(network_.traits),
      tasks_(std::move(tasks)),
      task_of_(std::move(task_of)),
      observer_(observer),
      budget_(config.tuning_seconds, clock),
      request_(network, network_.stream(0)),
      programs_(*network_.context, {network_.cache.get(), config.max_num_threads, "", {}}) {
  status_.layers = tasks_.size();
  set_noise(request_, network_.inputs);
}

bool TuningRun::go_on() {
  const std::lock_guard lock(mutex_);
  status_.seconds = budget_.passed();
  if (!stopped_ && observer_ && !observer_(status_)) stopped_ = true;
  return !stopped_;
}

void TuningRun::must_go_on() {
  if (!go_on()) throw stopped_error(config_);
}

void TuningRun::measure(const std::function<void(const TuningTask&)>& measured) {
  measured_ = measured;
  // Spends time where time can be saved: the operations that are worth most come first and get most
  // of the budget.
  take_times();
  order_by_worth(tasks_, traits_);
  for (const TuningTask& task : tasks_) budget_.add(task.worth);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    must_go_on();
    if (i > 0 && budget_.is_over()) break;
    // Compiles for the next operations while one is measured; not on a CPU, where that would
    // disturb the measuring.
    if (!traits_.is_cpu) compile_ahead(i + 1 + kAhead);
    if (tasks_[i].step == TuningTask::kNoStep)
      measure_trial(tasks_[i]);
    else
      measure_step(tasks_[i]);
  }
}

void TuningRun::take_times() {
  std::vector<double> least(task_of_.size(), std::numeric_limits<double>::infinity());
  request_.run_step_by_step([&](size_t) { must_go_on(); });
  for (int i = 0; i < kTimedRuns; ++i) {
    auto last = Clock::now();
    request_.run_step_by_step([&](size_t s) {
      least[s] = std::min(least[s], seconds_since(last));
      must_go_on();
      last = Clock::now();
    });
  }
  for (size_t s = 0; s < least.size(); ++s) {
    if (task_of_[s] == SIZE_MAX) continue;
    tasks_[task_of_[s]].seconds += least[s];
  }
  for (TuningTask& task : tasks_) {
    if (task.step == TuningTask::kNoStep) continue;
    task.seconds += least[task.step] * static_cast<double>(task.other_runs);
  }
  std::erase_if(tasks_, [&](TuningTask& task) {
    if (task.step != TuningTask::kNoStep) return false;
    must_go_on();
    const bool ready = set_up(task, [&] {
      task.seconds = seconds_of_trial(network_, task) * static_cast<double>(task.other_runs);
    });
    return !ready;
  });
  status_.layers = tasks_.size();
}

std::vector<KernelChoice> TuningRun::guesses_of(const TuningTask& task) {
  std::vector<KernelChoice> guesses = task.problem->guesses;
  for (const KernelChoice& choice : winners_[task.desc->type])
    if (std::count(task.families.begin(), task.families.end(), choice.family) &&
        index_in_space(choice, *task.desc, traits_) >= 0)
      guesses.push_back(choice);
  return guesses;
}

void TuningRun::compile_ahead(size_t until) {
  for (; wanted_ < std::min(until, tasks_.size()); ++wanted_) {
    const TuningTask& task = tasks_[wanted_];
    for (const KernelChoice& choice :
         first_candidates(*task.desc, traits_, task.families, guesses_of(task)))
      for (const ocl::Instantiation& program :
           instantiate(choice.family->plan(*task.desc, traits_, choice.point)))
        programs_.want(program);
  }
}

// Measures in the middle of an inference, after the step has run, when its operands are in memory.
void TuningRun::measure_step(const TuningTask& task) {
  Node* node = network_.plan().steps[task.step].node;
  request_.run_step_by_step([&](size_t s) {
    if (s == task.step)
      measure_task(task, [&](const Argument& argument) {
        return argument.kind == Argument::Kind::input
                   ? request_.buffer_of(node->inputs.at(argument.index))
                   : request_.buffer_of({node, static_cast<int>(argument.index)});
      });
    must_go_on();
  });
}

bool TuningRun::set_up(const TuningTask& task, const std::function<void()>& trial) {
  std::string why;
  try {
    trial();
    return true;
  } catch (const cl::Error& error) {
    why = std::string(error.what()) + " gave " + ocl::error_name(error.err());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    why = error.what();
  }
  task.problem->failed.emplace_back(to_string(task.problem->fallback),
                                    "its trial cannot be set up: " + why);
  return false;
}

void TuningRun::measure_trial(const TuningTask& task) {
  CandidateRunner::Find find;
  const bool ready = set_up(task, [&] {
    find = trial_memory(*network_.context, task);
    run_trial(network_, task, find, 1);
  });
  if (ready)
    measure_task(task, find);
  else
    budget_.remove(task.worth);
}

void TuningRun::measure_task(const TuningTask& task, const CandidateRunner::Find& find) {
  const std::vector<KernelChoice> guesses = guesses_of(task);
  const SearchLimits limits{budget_.take(task.worth), config_.tuning_exhaustive, budget_.clock()};
  {
    const std::lock_guard lock(mutex_);
    status_.layer = task.name;
    status_.tried = 0;
    status_.default_ns = status_.best_ns = 0;
  }
  const std::function<bool()> goes_on = [this] { return go_on(); };
  CandidateRunner runner(*network_.context, *task.desc, find, programs_, config_.max_num_threads,
                         goes_on);
  const SearchResult result = search(*task.desc, traits_, task.families, task.problem->fallback,
                                     guesses, runner, limits, [&](const SearchProgress& progress) {
                                       show_progress(progress);
                                       return go_on();
                                     });
  {
    const std::lock_guard lock(mutex_);
    ++status_.index;
    const double done = budget_.passed(), all = budget_.seconds();
    status_.seconds_left = all > 0 ? std::max(0.0, all - done)
                                   : done / static_cast<double>(status_.index) *
                                         static_cast<double>(status_.layers - status_.index);
  }
  const bool had_time = result.tried > 0 || !result.failed.empty();
  if (had_time) keep(task, result);
}

void TuningRun::show_progress(const SearchProgress& progress) {
  const std::lock_guard lock(mutex_);
  status_.tried = progress.tried;
  status_.default_ns = progress.default_ns;
  status_.best_ns = progress.best_ns;
}

void TuningRun::keep(const TuningTask& task, const SearchResult& result) {
  TuningProblem& problem = *task.problem;
  changed_ |= !(result.best == problem.choice);
  std::vector<KernelChoice>& known = winners_[task.desc->type];
  std::erase(known, result.best);
  known.insert(known.begin(), result.best);
  if (known.size() > kRelatives) known.pop_back();
  problem.measured = true;
  problem.source = LayerTuning::Source::measured;
  problem.choice = result.best;
  problem.partial = result.stopped;
  problem.ns = result.best_ns;
  problem.default_ns = result.default_ns;
  problem.tried = result.tried;
  problem.failed = result.failed;
  measured_(task);
}

}  // namespace clinfer
