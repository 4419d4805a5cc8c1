// The thread that makes a first tier.
#include "engine/compile/first_tier.h"

#include "engine/host/model.h"
#include "kernels/base/leaving.h"
#include "kernels/base/threads.h"

namespace clinfer {

namespace {

std::shared_ptr<host::HostModel> make_first_tier(const std::shared_ptr<const Model>& model,
                                                 const Config& config,
                                                 const std::function<void()>& may_go_on) {
  if (config.partial_batches) {
    Config one = config;
    one.batch = 1;
    try {
      return std::make_shared<host::HostModel>(model, one, may_go_on);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
    }
  }
  return std::make_shared<host::HostModel>(model, config, may_go_on);
}

}  // namespace

std::shared_ptr<CompiledModel> CompiledModel::compile_first_tier(std::shared_ptr<const Model> model,
                                                                 const Config& config) {
  return make_first_tier(model, config, [] {});
}

std::shared_ptr<CompiledModel> compile_for_host(const std::shared_ptr<const Model>& model,
                                                const Config& config, std::string warning) {
  const auto made = make_first_tier(model, config, [] {});
  made->warn(std::move(warning));
  return made;
}

FirstTierMaker::FirstTierMaker(std::shared_ptr<const Model> model, const Config& config,
                               FirstTier ready)
    : model_(std::move(model)), config_(config), ready_(std::move(ready)) {}

void FirstTierMaker::stop() {
  stopped_ = true;
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void FirstTierMaker::begin() {
  if (!ready_ || !config_.first_tier || begun_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  try {
    thread_ = start_thread([this] { make(); });
  } catch (const Error&) {
    // Without a thread there is no first tier.
  }
}

void FirstTierMaker::make() {
  std::shared_ptr<host::HostModel> made;
  std::string why_not;
  try {
    made = make_first_tier(model_, config_, [this] {
      if (stopped_ || is_leaving())
        throw Error(ErrorCode::cancelled, "the model is compiled, or the process ends");
    });
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    made_ = made;
  }
  try {
    ready_(std::move(made), why_not);
  } catch (...) {
    // The device's model comes anyway.
  }
}

std::shared_ptr<const host::HostModel> FirstTierMaker::made() {
  const std::lock_guard lock(mutex_);
  return made_;
}

std::shared_ptr<void> FirstTierMaker::pause(const std::function<bool()>& go_on) {
  constexpr auto kAskAgain = std::chrono::milliseconds(50);
  begun_ = true;  // none is begun from now on
  std::shared_ptr<host::HostModel> model;
  {
    const std::lock_guard lock(mutex_);
    model = made_;
    if (!model) stopped_ = true;  // nor finished
  }
  if (!model) return nullptr;
  struct Pause {
    std::shared_ptr<host::HostModel> model;
    std::unique_lock<std::timed_mutex> turn;  // released before the model
  };
  auto pause = std::make_shared<Pause>();
  pause->model = model;
  pause->turn = std::unique_lock(model->turn(), std::defer_lock);
  while (!pause->turn.try_lock_for(kAskAgain))
    if (!go_on()) throw Error(ErrorCode::cancelled, "compiling was cancelled");
  return pause;
}

}  // namespace clinfer
