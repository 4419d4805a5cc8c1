// Makes a first tier on a thread beside a compilation.
#include "engine/compile/first_tier.h"

#include "engine/host/model.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/log.h"
#include "kernels/base/system/leaving.h"

namespace clinfer {

std::shared_ptr<host::HostModel> make_first_tier(const std::shared_ptr<const Model>& model,
                                                 const Config& config,
                                                 const std::function<void()>& may_go_on,
                                                 double longest) {
  if (config.partial_batches) {
    Config one = config;
    one.batch = 1;
    try {
      return std::make_shared<host::HostModel>(model, one, may_go_on, longest);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
    }
  }
  return std::make_shared<host::HostModel>(model, config, may_go_on, longest);
}

std::shared_ptr<CompiledModel> CompiledModel::compile_first_tier(std::shared_ptr<const Model> model,
                                                                 const Config& config) {
  const DefaultFloats floats;
  return make_first_tier(
      model, config, [] {}, host::HostModel::kLongest);
}

std::shared_ptr<CompiledModel> compile_for_host(const std::shared_ptr<const Model>& model,
                                                const Config& config, std::string warning) {
  const auto made = make_first_tier(
      model, config, [] {}, host::HostModel::kLongest);
  made->warn(std::move(warning));
  return made;
}

FirstTierMaker::FirstTierMaker(std::shared_ptr<const Model> model, const Config& config,
                               Offer offer)
    : model_(std::move(model)),
      config_(config),
      offer_(std::move(offer)),
      may_begin_(offer_ != nullptr && config.has_first_tier()) {}

void FirstTierMaker::begin() {
  if (!std::exchange(may_begin_, false)) return;
  try {
    making_ = std::make_unique<Making>([this](const Making& task) { return make(task); });
  } catch (const Error&) {
    offer_(nullptr);  // no thread, so no first tier
  }
}

void FirstTierMaker::stop() {
  may_begin_ = false;
  making_.reset();
}

// Returns null if the host cannot serve this model, or nobody wants the tier any more.
std::shared_ptr<host::HostModel> FirstTierMaker::make(const Making& task) const {
  std::shared_ptr<host::HostModel> made;
  try {
    made = make_first_tier(
        model_, config_,
        [&task] {
          if (task.is_cancelled() || is_leaving())
            throw Error(ErrorCode::cancelled, "the model is compiled, or the process ends");
        },
        host::HostModel::kLongest);
  } catch (const std::exception& error) {
    log(LogArea::plan, LogLevel::debug,
        [&] { return model_->name() + " has no first tier: " + error.what(); });
  }
  if (task.is_cancelled()) return nullptr;
  offer_(made);
  return made;
}

std::shared_ptr<host::HostModel> FirstTierMaker::made_so_far() const {
  return making_ && making_->is_over() ? making_->newest() : nullptr;
}

std::shared_ptr<void> FirstTierMaker::pause(const std::function<bool()>& go_on) {
  constexpr auto kAskAgain = std::chrono::milliseconds(50);
  const std::shared_ptr<host::HostModel> model = made_so_far();
  if (!model) {
    stop();
    return nullptr;
  }
  struct Pause {
    std::shared_ptr<host::HostModel> model;
    // Declared after the model, so that it is released before.
    std::unique_lock<std::timed_mutex> turn;
  };
  auto pause = std::make_shared<Pause>();
  pause->model = model;
  pause->turn = std::unique_lock(model->turn(), std::defer_lock);
  while (!pause->turn.try_lock_for(kAskAgain))
    if (!go_on()) throw Error(ErrorCode::cancelled, "compiling was cancelled");
  return pause;
}

}  // namespace clinfer
