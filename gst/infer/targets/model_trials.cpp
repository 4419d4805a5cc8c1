// Implements the trials of variants of models.
#include "gst/infer/targets/model_trials.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "kernels/base/default_floats.h"
#include "kernels/base/system/leaving.h"

namespace clinfer {
namespace {

constexpr size_t kMostTrialNews = 8;
// Most streams of a device that is no CPU. A CPU may have one for each core.
constexpr unsigned kMostGpuStreams = 8;

// Returns what `variant` has that `from` has not.
std::string difference(const Variant& variant, const Variant& from) {
  if (variant.precision != from.precision) return name_of(variant.precision);
  return std::to_string(variant.streams) + (variant.streams == 1 ? " stream" : " streams");
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// Returns the geometric mean over the models of their frames per second, so that a model of few
// frames counts as much as one of many.
double mean_over_models(const std::vector<ModelTrials::User>& users,
                        double ModelTrials::User::*frames) {
  std::map<const Network*, double> sums;
  for (const ModelTrials::User& user : users) sums[user.model->network.get()] += user.*frames;
  double logs = 0;
  for (const auto& [network, sum] : sums) logs += std::log(std::max(sum, 0.01));
  return sums.empty() ? 0 : std::exp(logs / static_cast<double>(sums.size()));
}

TrialController::Bounds bounds_of(const Network& network,
                                  const std::vector<ModelTrials::User>& users) {
  TrialController::Bounds bounds;
  bool is_free = true;
  const SharedModel* model = nullptr;
  for (const ModelTrials::User& user : users) {
    if (user.model->network.get() != &network) continue;
    model = user.model.get();
    is_free = is_free && user.frees_streams;
  }
  // Each width of a text recogniser is a model of its own, and states belong to one request.
  if (model == nullptr || model->compiled->devices().size() != 1 ||
      !network.model->states().empty() || network.model->inputs()[network.image_input].open_width)
    return bounds;
  const DeviceInfo& device = model->compiled->device();
  const unsigned nireq = model->compiled_for.nireq;
  if (is_free && !model->config.streams_stated && !model->config.exclusive) {
    bounds.most_streams = device.is_cpu ? device.compute_units : kMostGpuStreams;
    if (nireq != 0) bounds.most_streams = std::min(bounds.most_streams, nireq);
  }
  for (const Precision precision : {Precision::bf16, Precision::f16, Precision::f32})
    if (model->compiled_for.allows(precision)) bounds.precisions.push_back(precision);
  return bounds;
}

}  // namespace

ModelTrials::Result ModelTrials::step(const std::vector<User>& users, bool is_short) {
  follow(users);
  const TrialController::Period period{mean_over_models(users, &User::inferred),
                                       mean_over_models(users, &User::wanted), is_short,
                                       users.size()};
  if (!trial_) {
    if (dropped_) return Result::none;
    for (auto& known : origins_) {
      const std::shared_ptr<const Network> network = known.first.lock();
      if (known.second.controller.next(period, bounds_of(*network, users)) !=
          TrialController::Phase::compiling)
        continue;
      begin(known);
      break;
    }
    return Result::none;
  }
  Origin& origin = origins_.find(trial_->network)->second;
  TrialController& controller = origin.controller;
  const TrialController::Phase before = controller.phase();
  if (before == TrialController::Phase::compiling && !take_candidate(origin)) return Result::none;
  const TrialController::Phase phase = controller.next(period, {});
  if (phase == TrialController::Phase::idle) return finish(origin);
  if (phase == TrialController::Phase::candidate && phase != before)
    tell(origin, "tries " + difference(controller.candidate(), controller.present()), true);
  return Result::none;
}

// Makes origins for new models, and forgets models that have no users.
void ModelTrials::follow(const std::vector<User>& users) {
  if (dropped_ && dropped_->compiling->is_over()) dropped_.reset();
  std::set<std::weak_ptr<const Network>, std::owner_less<>> used;
  for (const User& user : users) {
    used.insert(user.model->network);
    Origin& origin = origins_.try_emplace(user.model->network, user.model).first->second;
    if (origin.kept == user.model) origin.kept.reset();
  }
  std::erase_if(origins_, [&](const auto& known) { return !used.contains(known.first); });
  if (!trial_ || used.contains(trial_->network)) return;
  if (trial_->compiling != nullptr) {
    trial_->compiling->cancel();
    dropped_ = std::move(trial_);
  }
  trial_.reset();
}

void ModelTrials::begin(Origins::value_type& origin) {
  Trial trial{origin.first, origin.second.present.lock(), nullptr, nullptr};
  if (trial.present == nullptr) return origin.second.controller.stop();
  const Variant variant = origin.second.controller.candidate();
  const auto compile = [present = trial.present, variant](Compiling& task) {
    class Watch final : public LoadWatch {
     public:
      explicit Watch(const Compiling& task) : task_(task) {}
      bool goes_on(const CompileProgress&) override { return !task_.is_cancelled(); }
      void take_interim(std::shared_ptr<SharedModel>) override {}

     private:
      const Compiling& task_;
    } watch(task);
    pthread_setname_np(pthread_self(), "clinfer:variant");  // shown by top and gdb
    const DefaultFloats floats;
    const ExitWaits exit_waits;
    return compile_variant(*present, variant.streams, variant.precision, watch);
  };
  try {
    trial.compiling = std::make_unique<Compiling>(compile);
  } catch (const Error&) {
    return origin.second.controller.stop();  // no thread can be started now
  }
  trial_ = std::move(trial);
}

// Takes the candidate once it is compiled. Returns false while it is not, and if it cannot be had.
bool ModelTrials::take_candidate(Origin& origin) {
  if (!trial_->compiling->is_over()) return false;
  TrialController& controller = origin.controller;
  const Variant wanted = controller.candidate(), present = controller.present();
  std::string problem;
  try {
    trial_->candidate = trial_->compiling->wait();
    const CompiledModel& compiled = *trial_->candidate->compiled;
    if (Variant{compiled.streams(), compiled.precision()} != wanted) {
      problem = compiled.device().name + " computes it by " + std::to_string(compiled.streams()) +
                " streams in " + name_of(compiled.precision());
      for (const std::string& warning : compiled.warnings()) problem += "; " + warning;
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem.empty()) {
    trial_->compiling.reset();
    trial_->candidate->is_on_trial = true;
    controller.compiled();
    return true;
  }
  const std::string what = difference(wanted, present);
  origin.gains[what] = 0;
  controller.refuse();
  tell(origin, what + " cannot be had: " + problem, false, wanted.precision != present.precision);
  trial_.reset();
  return false;
}

// Ends the trial, with or without a result.
ModelTrials::Result ModelTrials::finish(Origin& origin) {
  const Trial trial = *std::exchange(trial_, std::nullopt);
  const std::optional<TrialController::Outcome>& outcome = origin.controller.outcome();
  origin.kept = outcome && outcome->taken ? trial.candidate : trial.present;
  origin.present = origin.kept;
  if (origin.controller.was_needless()) {
    tell(origin, "all frames are inferred in time without a trial");
    return Result::needless;
  }
  if (!outcome) {
    tell(origin, "the live streams changed, so that a trial ended without a result");
    return Result::kept;
  }
  const std::string to = difference(outcome->to, outcome->from),
                    from = difference(outcome->from, outcome->to);
  origin.gains[to] = outcome->gain;
  if (outcome->taken) {
    trial.candidate->is_on_trial = false;
    replace_shared(trial.present, trial.candidate);
  }
  tell(origin, to + " infers " + number_text(outcome->gain) + " times as many frames as " + from +
                   (outcome->taken ? ", and is taken" : ", which stays"));
  return outcome->taken ? Result::taken : Result::kept;
}

void ModelTrials::tell(Origin& origin, const std::string& text, bool on_trial, bool refused) {
  const TrialController& controller = origin.controller;
  origin.news.push_back(
      {++told_, text, on_trial ? controller.candidate() : controller.present(), on_trial, refused});
  if (origin.news.size() > kMostTrialNews) origin.news.pop_front();
}

bool ModelTrials::is_measuring() const {
  return trial_ && origins_.find(trial_->network)->second.controller.is_measuring();
}

std::optional<ModelTrials::Report> ModelTrials::report(const SharedModel& model) const {
  const auto known = origins_.find(model.network);
  if (known == origins_.end()) return std::nullopt;
  const Origin& origin = known->second;
  Report report;
  report.variant = origin.controller.present();
  for (const auto& [what, gain] : origin.gains)
    report.tried += (report.tried.empty() ? "" : ", ") + what + ": " + number_text(gain);
  report.news.assign(origin.news.begin(), origin.news.end());
  const bool is_tried = origin.controller.phase() == TrialController::Phase::candidate;
  report.use = is_tried ? trial_->candidate : origin.present.lock();
  return report;
}

std::shared_ptr<SharedModel> ModelTrials::settled(const std::shared_ptr<SharedModel>& model) const {
  const auto known = origins_.find(model->network);
  const auto present = known != origins_.end() ? known->second.present.lock() : nullptr;
  return present != nullptr ? present : model;
}

}  // namespace clinfer
