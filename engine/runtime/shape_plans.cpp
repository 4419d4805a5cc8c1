// Compiles and keeps models for other shapes.
#include "engine/runtime/shape_plans.h"

#include <algorithm>
#include <chrono>

#include "engine/runtime/model.h"
#include "kernels/base/log.h"

namespace clinfer {

// Needs the lock.
std::shared_ptr<const ShapePlans::Plan> ShapePlans::use(const Shapes& shapes) {
  const auto found = std::ranges::find_if(
      plans_, [&](const std::shared_ptr<const Plan>& plan) { return plan->shapes == shapes; });
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return plans_.front();
}

std::shared_ptr<const ShapePlans::Plan> ShapePlans::find_or_compile(
    const Shapes& shapes, const std::atomic<bool>& cancelled) {
  constexpr auto kAskAgain = std::chrono::milliseconds(20);
  std::list<Shapes>::iterator mine;
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (auto plan = use(shapes)) return plan;
      if (std::ranges::count(compiling_, shapes) == 0) break;
      changed_.wait_for(lock, kAskAgain);
      if (cancelled) throw Error(ErrorCode::cancelled, "the inference was cancelled");
    }
    mine = compiling_.insert(compiling_.end(), shapes);
  }
  std::shared_ptr<const Plan> made;
  std::exception_ptr failure;
  try {
    std::unique_ptr<Graph> graph = model_->graph().clone();
    reshape(*graph, shapes);
    log(LogArea::plan, LogLevel::info,
        [&] { return model_->path() + " is compiled for other shapes of its inputs"; });
    made = std::make_shared<const Plan>(
        Plan{shapes, compile_(std::make_shared<ReadModel>(*model_, std::move(graph)),
                              [&](const std::string&, size_t, size_t) { return !cancelled; })});
  } catch (...) {
    failure = std::current_exception();
  }
  std::shared_ptr<const Plan> dropped;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    compiling_.erase(mine);
    if (made != nullptr) {
      plans_.push_front(made);
      if (plans_.size() > most_) {
        dropped = std::move(plans_.back());
        plans_.pop_back();
      }
    }
  }
  changed_.notify_all();
  if (failure) std::rethrow_exception(failure);
  return made;
}

bool ShapePlans::has(const Plan& plan) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(plans_, [&](const auto& kept) { return kept.get() == &plan; });
}

std::vector<ShapePlans::Shapes> ShapePlans::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Shapes> shapes;
  for (const auto& plan : plans_) shapes.push_back(plan->shapes);
  return shapes;
}

std::shared_ptr<ShapePlans> plans_for(const std::shared_ptr<const Model>& model,
                                      const Config& config, ShapePlans::Compile compile) {
  const bool open = std::ranges::any_of(model->inputs(),
                                        [](const Port& port) { return !port.open_shape.empty(); });
  if (!open || config.shape_plans == 0 || config.nv12_two_inputs || !model->states().empty())
    return nullptr;
  return std::make_shared<ShapePlans>(model, std::move(compile), config.shape_plans);
}

Config config_of_plans(const Config& config) {
  Config other = config;
  other.batch = other.shape_plans = 0;
  other.partial_batches = false;
  other.graph_dumps_dir = other.sources_dumps_dir = "";
  // Measures nothing, because an inference waits for the plan.
  if (other.tuning_mode && *other.tuning_mode != TuningMode::disabled)
    other.tuning_mode = TuningMode::use_existing;
  if (other.streams == 0) other.streams = 1;
  return other;
}

}  // namespace clinfer
