// Records and measurements of one model on one device.
#include "engine/measure/tuning.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>

#include "engine/measure/ab_comparison.h"
#include "engine/measure/candidate_runner.h"
#include "engine/measure/noise.h"
#include "engine/measure/trial_picture.h"
#include "engine/passes/passes.h"
#include "engine/runtime/infer_request.h"
#include "kernels/frames/preprocess.h"
#include "tuning/op_key.h"
#include "tuning/shipped.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSaveInterval = std::chrono::seconds(2);
constexpr int kTimedRuns = 3;
constexpr double kLeastSeconds = 0.25;  // less of a budget is not worth starting on an operation
constexpr size_t kAhead = 4;            // operations whose kernels are compiled in advance
constexpr size_t kRelatives = 6;        // best points of earlier operations that a search tries
constexpr unsigned kInFlight = 2;       // requests a stream while the whole network is compared
constexpr double kWholeSeconds = 2;     // of comparing the whole network, each time
// Kernels that gained less than this alone are taken back, by the number of the attempt.
constexpr std::array kRevertedBelow = {1.05, 1.2, std::numeric_limits<double>::infinity()};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool same_values(const TuningPoint& a, const TuningPoint& b) {
  return a.values.size() == b.values.size() &&
         std::is_permutation(a.values.begin(), a.values.end(), b.values.begin());
}

// The kernel that a record names, or why there is none.
struct Resolved {
  KernelChoice choice;
  std::string lapsed;
};

Resolved resolve(const TuningRecord& record, const OpDesc& desc,
                 std::span<const KernelFamily* const> families, const DeviceTraits& traits) {
  const auto found =
      std::find_if(families.begin(), families.end(),
                   [&](const KernelFamily* family) { return family->name == record.family; });
  if (found == families.end()) return {{}, "there is no kernel " + record.family + " for it"};
  const KernelFamily* family = *found;
  if (record.family_version != 0 && record.family_version != family->version)
    return {{},
            "measured with version " + std::to_string(record.family_version) + " of " +
                record.family + ", this is version " + std::to_string(family->version)};
  const std::vector<TuningPoint> space = family->space(desc, traits);
  if (record.point) {
    for (const TuningPoint& point : space)
      if (same_values(point, *record.point)) return {{family, point}, ""};
    return {{}, record.family + " has no such point"};
  }
  if (record.index == -1) return {{family, family->heuristic(desc, traits)}, ""};
  if (record.index < 0 || static_cast<size_t>(record.index) >= space.size())
    return {{}, record.family + " has no point " + std::to_string(record.index)};
  return {{family, space[static_cast<size_t>(record.index)]}, ""};
}

bool reads_file(TuningMode mode) {
  return mode == TuningMode::create || mode == TuningMode::use_existing ||
         mode == TuningMode::update;
}

bool is_measuring(TuningMode mode) {
  return mode == TuningMode::create || mode == TuningMode::retune;
}

// Seconds of one execution: the mean of `repeat`.
double run_preprocess(DeviceModel& model, const OpDesc& desc, const TuningPoint& point,
                      const TrialPicture& picture, int repeat) {
  const KernelPlan plan = kPreprocessFamily.plan(desc, model.context().traits, point);
  const cl::CommandQueue& queue = model.queue(0);
  const auto begin = Clock::now();
  for (const KernelSpec& spec : plan.launches) {
    cl::Kernel kernel = model.extra_kernel(spec);
    bind_arguments(kernel, spec, [&](const Argument& argument) { return picture.find(argument); });
    for (int i = 0; i < repeat; ++i) enqueue(queue, kernel, spec);
  }
  queue.finish();
  return seconds_since(begin) / repeat;
}

double seconds_of_preprocess(DeviceModel& model, const OpDesc& desc, const TuningPoint& point) {
  const TrialPicture picture(model.context(), desc);
  run_preprocess(model, desc, point, picture, 1);  // builds it
  return run_preprocess(model, desc, point, picture, kTimedRuns);
}

}  // namespace

std::string name_of(LayerTuning::Source source) {
  static constexpr const char* kNames[] = {"untuned", "file", "shipped", "measured"};
  return kNames[static_cast<size_t>(source)];
}

Tuning::Tuning(const Config& config, const ocl::Context& context, const DeviceTraits& traits)
    : config_(config),
      context_(context),
      traits_(traits),
      units_(context.device.info.compute_units),
      name_(context.device.info.name),
      driver_(context.device.info.driver),
      kind_(device_kind(context.traits)) {
  if (config_.tuning_mode == TuningMode::disabled) return;
  if (config_.tuning_file.empty())
    throw Error(ErrorCode::bad_argument,
                "TUNING_MODE needs a file: set TUNING_FILE (tuning-file, --tuning-file)");
  if (!measures()) {
    file_ = TuningCache::read(config_.tuning_file);
    return;
  }
  // A malformed file is an error in every mode that writes it, also where its records do not count.
  TuningCache read = TuningCache::read_or_empty(config_.tuning_file);
  if (reads_file(config_.tuning_mode)) file_ = std::move(read);
}

bool Tuning::measures() const { return is_measuring(config_.tuning_mode); }

KernelChoice Tuning::choose(const OpDesc& desc, std::span<const KernelFamily* const> families) {
  return problem(desc, families).choice;
}

TuningPoint Tuning::choose_preprocess(const OpDesc& desc) {
  const KernelFamily* const families[] = {&kPreprocessFamily};
  if (!problems_.contains(op_key(desc))) pictures_.push_back(desc);
  return problem(desc, families).choice.point;
}

Tuning::Problem& Tuning::problem(const OpDesc& desc,
                                 std::span<const KernelFamily* const> families) {
  std::string op = op_key(desc);
  const auto [found, fresh] = problems_.try_emplace(op);
  Problem& problem = found->second;
  if (!fresh) return problem;
  problem.hash = record_hash(op, name_);
  problem.op = std::move(op);
  problem.fallback = {families.front(), families.front()->heuristic(desc, traits_)};
  problem.choice = problem.fallback;
  problem.has_choice = families.size() > 1 || families.front()->space(desc, traits_).size() > 1;
  if (problem.has_choice) look_up(problem, desc, families);
  return problem;
}

void Tuning::look_up(Problem& problem, const OpDesc& desc,
                     std::span<const KernelFamily* const> families) {
  if (const TuningRecord* record = file_.find(units_, problem.hash)) {
    Resolved resolved = resolve(*record, desc, families, traits_);
    problem.lapsed = resolved.lapsed;
    if (!record->op.empty() && record->op != problem.op)
      problem.lapsed = "it is about another operation";
    else if (!record->device.empty() && record->device != name_)
      problem.lapsed = "measured on " + record->device;
    else if (problem.lapsed.empty() && !record->driver.empty() && record->driver != driver_)
      problem.lapsed = "measured with driver " + record->driver + ", this is " + driver_;
    if (resolved.choice.family) problem.guesses.push_back(resolved.choice);
    if (problem.lapsed.empty()) {
      problem.source = LayerTuning::Source::file;
      problem.choice = resolved.choice;
      problem.partial = record->partial;
      problem.ns = record->ns;
      problem.default_ns = record->default_ns;
    }
  }
  if (!config_.tuning_db) return;
  for (const ShippedRecord& shipped : shipped_records(problem.op, traits_)) {
    const Resolved resolved = resolve(*shipped.record, desc, families, traits_);
    if (!resolved.choice.family) continue;
    problem.guesses.push_back(resolved.choice);
    // A kernel that will be measured starts from the untuned one.
    if (!shipped.same_device || problem.source != LayerTuning::Source::untuned || measures())
      continue;
    problem.source = LayerTuning::Source::shipped;
    problem.choice = resolved.choice;
    problem.ns = shipped.record->ns;
    problem.default_ns = shipped.record->default_ns;
  }
}

bool Tuning::wants_measuring(const Problem& problem) const {
  if (!problem.has_choice || problem.measured) return false;
  return config_.tuning_mode == TuningMode::retune ||
         (config_.tuning_mode == TuningMode::create &&
          (problem.source == LayerTuning::Source::untuned || problem.partial));
}

TuningRecord Tuning::record_of(const Problem& problem, const OpDesc& desc) const {
  TuningRecord record;
  record.family = problem.choice.family->name;
  record.index = index_in_space(problem.choice, desc, traits_);
  record.op = problem.op;
  record.point = problem.choice.point;
  record.family_version = problem.choice.family->version;
  record.device = name_;
  record.driver = driver_;
  record.kind = kind_;
  record.ns = problem.ns;
  record.default_ns = problem.default_ns;
  record.partial = problem.partial;
  record.failed = problem.failed;
  return record;
}

void Tuning::save() {
  std::error_code ignored;
  if (fresh_.empty() && std::filesystem::exists(config_.tuning_file, ignored)) return;
  update_tuning_file(config_.tuning_file, [&](TuningCache& cache) {
    for (const auto& [hash, record] : fresh_) cache.set(units_, hash, record);
  });
  fresh_.clear();
}

bool Tuning::measure(DeviceModel& model, const std::vector<bool>& parts,
                     const ocl::ProgramCache* cache, const TuningObserver& observer) {
  if (!measures()) return false;
  const Plan& plan = model.plan();
  std::vector<Task> todo;
  std::vector<size_t> task_of(plan.steps.size(), SIZE_MAX);
  std::map<const Problem*, size_t> numbers;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].on_host) continue;
    Problem& problem = problems_.at(op_key(plan.steps[s].desc));
    if (!wants_measuring(problem)) continue;
    task_of[s] = numbers.try_emplace(&problem, todo.size()).first->second;
    if (task_of[s] == todo.size())
      todo.push_back({&problem, &plan.steps[s].desc,
                      accepting_families(*plan.steps[s].node->def, plan.steps[s].desc, traits_),
                      s});
  }
  for (const OpDesc& picture : pictures_) {
    Problem& problem = problems_.at(op_key(picture));
    if (wants_measuring(problem)) todo.push_back({&problem, &picture, {&kPreprocessFamily}});
  }
  if (todo.empty()) return false;
  check_tuning_file(config_.tuning_file);

  const auto start = Clock::now();
  std::mutex mutex;  // builds run on several threads, each asks whether to go on
  bool stopped = false;
  TuningStatus& status = status_ = {};
  status.layers = todo.size();
  const std::function<bool()> go_on = [&] {
    const std::lock_guard lock(mutex);
    status.seconds = seconds_since(start);
    if (!stopped && observer && !observer(status)) stopped = true;
    return !stopped;
  };
  const auto must_go_on = [&] {
    if (!go_on()) stop();
  };
  DeviceRequest request(model, model.stream(0));
  set_noise(request, model.inputs());
  // Time is spent where time can be saved: what takes longest goes first and gets most of the
  // budget.
  std::vector<double> least(plan.steps.size(), std::numeric_limits<double>::infinity());
  request.run_step_by_step([&](size_t) { must_go_on(); });
  for (int i = 0; i < kTimedRuns; ++i) {
    auto last = Clock::now();
    request.run_step_by_step([&](size_t s) {
      least[s] = std::min(least[s], seconds_since(last));
      must_go_on();
      last = Clock::now();
    });
  }
  double left = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    if (task_of[s] == SIZE_MAX) continue;
    todo[task_of[s]].seconds += least[s];
    left += least[s];
  }
  for (Task& task : todo)
    if (task.step == kNoStep) {
      task.seconds = seconds_of_preprocess(model, *task.desc, task.problem->fallback.point);
      left += task.seconds;
      must_go_on();
    }
  std::stable_sort(todo.begin(), todo.end(),
                   [](const Task& a, const Task& b) { return a.seconds > b.seconds; });

  ocl::ProgramBuilder programs(context_, {cache, config_.max_num_threads, "", {}});
  // The best kernel of an earlier operation of the same type often is the best of this one.
  std::map<std::string, std::vector<KernelChoice>> winners;
  const auto guesses_of = [&](const Task& task) {
    std::vector<KernelChoice> guesses = task.problem->guesses;
    for (const KernelChoice& choice : winners[task.desc->type])
      if (std::find(task.families.begin(), task.families.end(), choice.family) !=
              task.families.end() &&
          index_in_space(choice, *task.desc, traits_) >= 0)
        guesses.push_back(choice);
    return guesses;
  };
  // While one operation is measured, compilers work for the next ones; not on a CPU, where they
  // would disturb the measuring.
  size_t wanted = 0;
  const PersistentPart persistent{traits_, model.persistent_groups()};
  const auto part_of = [&](const Task& task) {
    return task.step != kNoStep && parts[task.step] ? &persistent : nullptr;
  };
  const auto compile_ahead = [&](size_t until) {
    for (; wanted < std::min(until, todo.size()); ++wanted) {
      const Task& task = todo[wanted];
      for (const KernelChoice& choice :
           first_candidates(*task.desc, traits_, task.families, guesses_of(task)))
        for (const ocl::Instantiation& program :
             instantiate(choice.family->plan(*task.desc, traits_, choice.point), part_of(task)))
          programs.want(program);
    }
  };
  auto saved = Clock::now();
  bool changed = false;
  const auto measure_task = [&](const Task& task, const CandidateRunner::Find& find) {
    Problem& problem = *task.problem;
    const std::vector<KernelChoice> guesses = guesses_of(task);
    SearchLimits limits{0, config_.tuning_exhaustive};
    if (config_.tuning_seconds > 0)
      limits.seconds = std::max(kLeastSeconds, (config_.tuning_seconds - seconds_since(start)) *
                                                   task.seconds / std::max(left, 1e-9));
    left -= task.seconds;
    {
      const std::lock_guard lock(mutex);
      status.layer = task.desc->name;
      status.tried = 0;
      status.default_ns = status.best_ns = 0;
    }
    CandidateRunner runner(context_, *task.desc, find, part_of(task), programs,
                           config_.max_num_threads, go_on);
    const SearchResult result =
        search(*task.desc, traits_, task.families, problem.fallback, guesses, runner, limits,
               [&](const SearchProgress& progress) {
                 {
                   const std::lock_guard lock(mutex);
                   status.tried = progress.tried;
                   status.default_ns = progress.default_ns;
                   status.best_ns = progress.best_ns;
                 }
                 return go_on();
               });
    {
      const std::lock_guard lock(mutex);
      ++status.index;
      const double done = seconds_since(start), all = config_.tuning_seconds;
      status.seconds_left = all > 0 ? std::max(0.0, all - done)
                                    : done / static_cast<double>(status.index) *
                                          static_cast<double>(status.layers - status.index);
    }
    if (result.tried == 0 && result.failed.empty()) return;  // no time for it
    changed |= !(result.best == problem.choice);
    std::vector<KernelChoice>& known = winners[task.desc->type];
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
    fresh_.emplace_back(problem.hash, record_of(problem, *task.desc));
    if (Clock::now() - saved > kSaveInterval) {
      save();
      saved = Clock::now();
    }
  };
  try {
    for (const Task& task : todo) {
      must_go_on();
      if (config_.tuning_seconds > 0 && &task != &todo[0] &&
          seconds_since(start) > config_.tuning_seconds)
        break;
      if (!traits_.is_cpu) compile_ahead(static_cast<size_t>(&task - todo.data()) + 1 + kAhead);
      if (task.step == kNoStep) {
        const TrialPicture picture(context_, *task.desc);
        run_preprocess(model, *task.desc, task.problem->fallback.point, picture, 1);
        measure_task(task, [&](const Argument& argument) { return picture.find(argument); });
        continue;
      }
      Node* node = plan.steps[task.step].node;
      request.run_step_by_step([&](size_t s) {
        if (s == task.step)
          measure_task(task, [&](const Argument& argument) {
            return argument.kind == Argument::Kind::input
                       ? request.buffer_of(node->inputs.at(argument.index))
                       : request.buffer_of({node, static_cast<int>(argument.index)});
          });
        must_go_on();
      });
    }
  } catch (...) {
    if (stopped) stop();
    save();
    throw;
  }
  save();
  seconds_ = seconds_since(start);
  return changed;
}

void Tuning::stop() {
  save();
  throw Error(ErrorCode::cancelled, "tuning was stopped; what was measured is in " +
                                        config_.tuning_file + ", TUNING_CREATE goes on from there");
}

bool Tuning::is_not_slower(DeviceModel& tuned, DeviceModel& untuned,
                           const TuningObserver& observer) {
  status_.layer = "the whole network";
  status_.index = status_.layers;
  status_.tried = 0;
  status_.default_ns = status_.best_ns = status_.seconds_left = 0;
  const auto requests_of = [](DeviceModel& model) {
    Requests requests;
    for (unsigned i = 0; i < kInFlight * model.streams(); ++i) {
      requests.push_back(std::make_unique<DeviceRequest>(model, model.stream(i % model.streams())));
      set_noise(*requests.back(), model.inputs());
    }
    return requests;
  };
  Requests with = requests_of(tuned), without = requests_of(untuned);
  const auto start = Clock::now();
  bool stopped = false;
  const double before = seconds_;
  const ABComparison whole = compare_alternately(without, with, kWholeSeconds, [&] {
    status_.seconds = seconds_ = before + seconds_since(start);
    stopped = stopped || (observer && !observer(status_));
    return !stopped;
  });
  if (stopped) stop();
  gain_ = whole.gain;
  return !whole.second_is_slower();
}

bool Tuning::revert_least_gains(const Plan& plan) {
  bool changed = false;
  while (!changed && reverts_ < kRevertedBelow.size()) {
    const double below = kRevertedBelow[reverts_++];
    for (const Step& step : plan.steps) {
      if (step.on_host) continue;
      Problem& problem = problems_.at(op_key(step.desc));
      if (!problem.measured || problem.choice == problem.fallback ||
          problem.default_ns >= below * problem.ns)
        continue;
      problem.choice = problem.fallback;
      problem.ns = problem.default_ns;
      problem.reverted = changed = true;
      fresh_.emplace_back(problem.hash, record_of(problem, step.desc));
    }
  }
  save();
  return changed;
}

TuningReport Tuning::finish(const Plan& plan) {
  TuningReport report;
  report.mode = config_.tuning_mode;
  report.file = config_.tuning_file;
  report.gain = gain_;
  report.seconds = seconds_;
  std::map<std::string, TuningRecord> promoted;
  std::vector<std::string> lapsed;
  std::vector<const OpDesc*> all;
  for (const Step& step : plan.steps)
    if (!step.on_host) all.push_back(&step.desc);
  for (const OpDesc& picture : pictures_) all.push_back(&picture);
  for (const OpDesc* desc : all) {
    const Problem& problem = problems_.at(op_key(*desc));
    if (!problem.has_choice) continue;
    LayerTuning layer{desc->name,
                      desc->type,
                      problem.op,
                      problem.source,
                      to_string(problem.choice),
                      to_string(problem.fallback),
                      problem.ns,
                      problem.default_ns,
                      problem.tried,
                      problem.lapsed,
                      {}};
    for (const auto& [kernel, why] : problem.failed) layer.failed.push_back(kernel + ": " + why);
    report.layers.push_back(std::move(layer));
    const bool hit = problem.source == LayerTuning::Source::file;
    ++(hit ? report.hits : report.misses);
    report.lapsed += !problem.lapsed.empty();
    report.shipped += problem.source == LayerTuning::Source::shipped;
    report.measured += problem.measured;
    report.taken_back += problem.reverted;
    if (!problem.lapsed.empty()) lapsed.push_back(problem.hash);
    if (const TuningRecord* record = file_.find(units_, problem.hash);
        hit && record && record->op.empty())
      promoted.emplace(problem.hash, record_of(problem, *desc));
  }
  if (config_.tuning_mode == TuningMode::update && (!promoted.empty() || !lapsed.empty()))
    update_tuning_file(config_.tuning_file, [&](TuningCache& cache) {
      for (const std::string& hash : lapsed) cache.erase(units_, hash);
      for (const auto& [hash, record] : promoted) cache.set(units_, hash, record);
    });
  return report;
}

}  // namespace clinfer
