// Manages records and measurements of one model on one device.
#include "engine/measure/tuning.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>

#include "engine/measure/ab_comparison.h"
#include "engine/measure/clock.h"
#include "engine/measure/noise.h"
#include "engine/passes/passes.h"
#include "engine/plan/kernel_layers.h"
#include "engine/plan/work.h"
#include "engine/runtime/requests/infer_request.h"
#include "kernels/base/log.h"
#include "kernels/frames/preprocess.h"
#include "tuning/op_key.h"
#include "tuning/shipped.h"

namespace clinfer {

namespace {

constexpr auto kSaveInterval = std::chrono::seconds(2);
constexpr unsigned kInFlight = 2;    // requests for each stream while whole networks are compared
constexpr double kWholeSeconds = 2;  // for each comparison of whole networks
// In each attempt, kernels are taken back if they gained less than this alone.
constexpr std::array kRevertedBelow = {1.05, 1.2, std::numeric_limits<double>::infinity()};

bool same_values(const TuningPoint& a, const TuningPoint& b) {
  return a.values.size() == b.values.size() &&
         std::is_permutation(a.values.begin(), a.values.end(), b.values.begin());
}

// The kernel that a record names, or the reason why there is none.
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
  // If a search found nothing faster than the untuned kernel of its time, its record does not apply
  // to another untuned kernel.
  const bool untuned_was_best =
      record.point ? record.ns > 0 && record.ns == record.default_ns : !record.op.empty();
  if (untuned_was_best && family != families.front())
    return {{},
            "measured when " + record.family + " was the untuned kernel, which is " +
                families.front()->name + " now"};
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

}  // namespace

std::string name_of(LayerTuning::Source source) {
  static constexpr const char* kNames[] = {"untuned", "file", "shipped", "measured"};
  return kNames[static_cast<size_t>(source)];
}

Tuning::Tuning(const Config& config, const ocl::Context& context, const DeviceTraits& traits,
               SecondsClock clock)
    : config_(config),
      mode_(config.tuning_mode_in_force()),
      context_(context),
      traits_(traits),
      clock_(std::move(clock)),
      units_(context.device.info.compute_units),
      name_(context.device.info.name),
      driver_(context.device.info.driver),
      kind_(device_kind(context.traits)) {
  if (mode_ == TuningMode::disabled) return;
  if (config_.tuning_file.empty())
    throw Error(ErrorCode::bad_argument,
                "TUNING_MODE needs a file: set TUNING_FILE (tuning-file, --tuning-file)");
  if (!measures()) {
    file_ = TuningCache::read(config_.tuning_file);
    foreign_ = file_.foreign_records();
    return;
  }
  // Throws for a malformed file in every mode that writes it, even if its records are not used.
  TuningCache read = TuningCache::read_or_empty(config_.tuning_file);
  foreign_ = read.foreign_records();
  if (reads_file(mode_)) file_ = std::move(read);
}

bool Tuning::measures() const { return is_measuring(mode_); }

std::string Tuning::warning() const {
  if (!config_.tuning_mode && !config_.tuning_file.empty() && mode_ == TuningMode::disabled)
    return "tuning file " + config_.tuning_file +
           " is not there, so no kernel is tuned; TUNING_MODE=TUNING_CREATE (tuning-mode=create) "
           "makes it";
  if (foreign_ > 0)
    return "tuning file " + config_.tuning_file + ": " + std::to_string(foreign_) +
           (foreign_ == 1 ? " record is" : " records are") +
           " of another engine and not used, but kept" +
           (measures() ? ""
                       : "; TUNING_MODE=TUNING_CREATE (tuning-mode=create) adds this engine's");
  return "";
}

KernelChooser Tuning::chooser() {
  return [this](const OpDesc& desc, std::span<const KernelFamily* const> families) {
    return choose(desc, families);
  };
}

KernelChoice Tuning::choose(const OpDesc& desc, std::span<const KernelFamily* const> families) {
  return problem(desc, families).choice;
}

TuningPoint Tuning::choose_preprocess(const OpDesc& desc) {
  const KernelFamily* const families[] = {&kPreprocessFamily};
  if (!problems_.contains(op_key(desc))) pictures_.push_back(desc);
  return problem(desc, families).choice.point;
}

TuningProblem& Tuning::problem(const OpDesc& desc, std::span<const KernelFamily* const> families) {
  std::string op = op_key(desc);
  const auto [found, fresh] = problems_.try_emplace(op);
  TuningProblem& problem = found->second;
  if (!fresh) return problem;
  // Records of sums in one order are other ones, since other points are faster.
  if (traits_.ordered_sums) op += " sums=ordered";
  problem.hash = record_hash(op, name_);
  problem.op = std::move(op);
  problem.fallback = {families.front(), families.front()->heuristic(desc, traits_)};
  problem.choice = problem.fallback;
  problem.has_choice = families.size() > 1 || families.front()->space(desc, traits_).size() > 1;
  if (problem.has_choice) look_up(problem, desc, families);
  return problem;
}

void Tuning::look_up(TuningProblem& problem, const OpDesc& desc,
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
  for (const ShippedRecord& shipped : shipped_records(problem.op, traits_, measures())) {
    const Resolved resolved = resolve(*shipped.record, desc, families, traits_);
    if (!resolved.choice.family) continue;
    problem.guesses.push_back(resolved.choice);
    // Kernels that will be measured start from the untuned one.
    if (!shipped.same_device || problem.source != LayerTuning::Source::untuned || measures())
      continue;
    problem.source = LayerTuning::Source::shipped;
    problem.choice = resolved.choice;
    problem.ns = shipped.record->ns;
    problem.default_ns = shipped.record->default_ns;
  }
}

bool Tuning::avoid_spills(const Plan& plan, const std::function<uint64_t(size_t step)>& spilled) {
  bool changed = false;
  std::set<const TuningProblem*> seen;
  for (const KernelLayer& layer : kernel_layers(plan)) {
    TuningProblem& problem = problems_.at(op_key(layer.step->desc));
    if (layer.in_loop || problem.source != LayerTuning::Source::untuned || problem.settled ||
        !seen.insert(&problem).second)
      continue;
    const KernelChoice before = problem.choice;
    const uint64_t bytes = spilled(layer.number);
    problem.settled = bytes == 0;
    if (problem.settled) continue;
    problem.spilled.push_back(bytes);
    const std::vector<KernelChoice> candidates =
        untuned_candidates(layer.step->desc, traits_, *before.family);
    problem.settled = problem.spilled.size() == candidates.size();
    const auto least = std::ranges::min_element(problem.spilled) - problem.spilled.begin();
    problem.choice =
        candidates[problem.settled ? static_cast<size_t>(least) : problem.spilled.size()];
    problem.fallback = problem.choice;
    changed = changed || problem.choice != before;
    log(LogArea::plan, LogLevel::debug, [&] {
      return layer.name + ": " + to_string(before) + " spills " + std::to_string(bytes) +
             " bytes of registers, so it gets " + to_string(problem.choice);
    });
  }
  return changed;
}

bool Tuning::wants_measuring(const TuningProblem& problem) const {
  if (!problem.has_choice || problem.measured) return false;
  return mode_ == TuningMode::retune ||
         (mode_ == TuningMode::create &&
          (problem.source == LayerTuning::Source::untuned || problem.partial));
}

TuningRecord Tuning::record_of(const TuningProblem& problem, const OpDesc& desc) const {
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

bool Tuning::measure(const std::shared_ptr<const DeviceNetwork>& network,
                     const TuningObserver& observer) {
  if (!measures()) return false;
  const Plan& plan = network->plan();
  std::vector<TuningTask> tasks;
  std::vector<size_t> task_of(plan.steps.size(), SIZE_MAX);
  std::map<const TuningProblem*, size_t> numbers;
  std::vector<KernelLayer> layers = kernel_layers(plan);
  // Measures a problem that occurs inside and outside of loops outside of them, on real operands.
  std::stable_partition(layers.begin(), layers.end(),
                        [](const KernelLayer& layer) { return !layer.in_loop; });
  for (const KernelLayer& layer : layers) {
    const OpDesc& desc = layer.step->desc;
    TuningProblem& problem = problems_.at(op_key(desc));
    if (!wants_measuring(problem)) continue;
    const size_t number = numbers.try_emplace(&problem, tasks.size()).first->second;
    if (number == tasks.size())
      tasks.push_back({&problem, &desc, layer.name,
                       accepting_families(*layer.step->node->def, desc, traits_),
                       layer.in_loop ? TuningTask::kNoStep : layer.number});
    if (layer.in_loop)
      tasks[number].other_runs += layer.times;
    else
      task_of[layer.number] = number;
  }
  for (const OpDesc& picture : pictures_) {
    TuningProblem& problem = problems_.at(op_key(picture));
    if (wants_measuring(problem))
      tasks.push_back(
          {&problem, &picture, picture.name, {&kPreprocessFamily}, TuningTask::kNoStep, 1});
  }
  if (tasks.empty()) return false;
  check_tuning_file(config_.tuning_file);

  TuningRun run(config_, network, std::move(tasks), std::move(task_of), observer, clock_);
  const auto start = Clock::now();
  auto saved = start;
  try {
    run.measure([&](const TuningTask& task) {
      fresh_.emplace_back(task.problem->hash, record_of(*task.problem, *task.desc));
      log(LogArea::tuning, LogLevel::debug, [&] {
        return op_key(*task.desc) + ": " + std::to_string(task.problem->default_ns / 1000) +
               " us by default, " + std::to_string(task.problem->ns / 1000) + " us now";
      });
      if (Clock::now() - saved <= kSaveInterval) return;
      save();
      saved = Clock::now();
    });
  } catch (...) {
    save();
    if (run.stopped()) throw stopped_error(config_);
    throw;
  }
  save();
  status_ = run.status();
  seconds_ = seconds_since(start);
  return run.changed();
}

bool Tuning::is_not_slower(const std::shared_ptr<const DeviceNetwork>& tuned,
                           const std::shared_ptr<const DeviceNetwork>& untuned,
                           const TuningObserver& observer) {
  status_.layer = "the whole network";
  status_.index = status_.layers;
  status_.tried = 0;
  status_.default_ns = status_.best_ns = status_.seconds_left = 0;
  const auto requests_of = [](const std::shared_ptr<const DeviceNetwork>& network) {
    Requests requests;
    for (unsigned i = 0; i < kInFlight * network->stream_count(); ++i) {
      requests.push_back(
          std::make_unique<DeviceRequest>(network, network->stream(i % network->stream_count())));
      set_noise(*requests.back(), network->inputs);
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
  if (stopped) {
    save();
    throw stopped_error(config_);
  }
  gain_ = whole.gain;
  return !whole.second_is_slower();
}

bool Tuning::revert_least_gains(const Plan& plan) {
  bool changed = false;
  while (!changed && reverts_ < kRevertedBelow.size()) {
    const double below = kRevertedBelow[reverts_++];
    for (const KernelLayer& layer : kernel_layers(plan)) {
      TuningProblem& problem = problems_.at(op_key(layer.step->desc));
      if (!problem.measured || problem.choice == problem.fallback ||
          problem.default_ns >= below * problem.ns)
        continue;
      problem.choice = problem.fallback;
      problem.ns = problem.default_ns;
      problem.reverted = changed = true;
      fresh_.emplace_back(problem.hash, record_of(problem, layer.step->desc));
    }
  }
  save();
  return changed;
}

std::vector<ProblemRecord> Tuning::records(const Plan& plan) const {
  std::vector<ProblemRecord> found;
  std::map<const TuningProblem*, size_t> numbers;
  const auto add = [&](const OpDesc& desc, size_t layers, double times) {
    const TuningProblem& problem = problems_.at(op_key(desc));
    if (!problem.has_choice) return;
    const size_t number = numbers.try_emplace(&problem, found.size()).first->second;
    if (number == found.size())
      found.push_back({problem.op, to_string(problem.choice), problem.source, 0, 0});
    found[number].layers += layers;
    found[number].multiply_adds += times * multiply_adds(desc);
  };
  for (const KernelLayer& layer : kernel_layers(plan))
    add(layer.step->desc, 1, static_cast<double>(layer.times));
  for (const OpDesc& picture : pictures_) add(picture, 0, 1);
  return found;
}

TuningReport Tuning::finish(const Plan& plan) {
  TuningReport report;
  report.mode = mode_;
  report.file = config_.tuning_file;
  report.gain = gain_;
  report.seconds = seconds_;
  const bool is_known = has_shipped_records(traits_);
  std::map<std::string, TuningRecord> promoted;
  std::vector<std::string> lapsed;
  std::vector<std::pair<std::string, const OpDesc*>> all;
  for (const KernelLayer& layer : kernel_layers(plan))
    all.emplace_back(layer.name, &layer.step->desc);
  for (const OpDesc& picture : pictures_) all.emplace_back(picture.name, &picture);
  for (const auto& [name, desc] : all) {
    const TuningProblem& problem = problems_.at(op_key(*desc));
    if (!problem.has_choice) continue;
    LayerTuning layer{name,
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
    report.modelled += problem.source == LayerTuning::Source::untuned && !is_known;
    report.taken_back += problem.reverted;
    if (!problem.lapsed.empty()) lapsed.push_back(problem.hash);
    if (const TuningRecord* record = file_.find(units_, problem.hash);
        hit && record && record->op.empty())
      promoted.emplace(problem.hash, record_of(problem, *desc));
  }
  if (mode_ == TuningMode::update && (!promoted.empty() || !lapsed.empty()))
    update_tuning_file(config_.tuning_file, [&](TuningCache& cache) {
      for (const std::string& hash : lapsed) cache.erase(units_, hash);
      for (const auto& [hash, record] : promoted) cache.set(units_, hash, record);
    });
  return report;
}

}  // namespace clinfer
