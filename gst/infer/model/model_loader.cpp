// Compiles a model in the background, and posts progress, tuning and warnings on the bus.
#include "gst/infer/model/model_loader.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/log.h"
#include "gst/infer/model/tuning_messages.h"
#include "kernels/base/system/leaving.h"

#define GST_CAT_DEFAULT clinfer_loader_debug

namespace clinfer {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(200);

// Returns true once per interval.
class Pacer {
 public:
  bool is_due() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ <= kProgressInterval) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

void say_what_was_settled(GstElement* element, const Network& network, const Settings& settings) {
  if (network.head.name == "none" && settings.post_process == "auto")
    GST_ELEMENT_WARNING(element, STREAM, FORMAT,
                        ("%s: %s; frames get the raw tensors", network.model->path().c_str(),
                         network.head.reason.c_str()),
                        ("set post-process=none if that is what you want"));
  for (const std::string& warning : network.warnings)
    GST_ELEMENT_WARNING(element, STREAM, FORMAT,
                        ("%s: %s", network.model->path().c_str(), warning.c_str()), (nullptr));
  for (const std::string& note : network.model->notes())
    GST_ELEMENT_INFO(element, STREAM, FORMAT,
                     ("%s: %s", network.model->path().c_str(), note.c_str()), (nullptr));
  GST_INFO_OBJECT(element, "%s", explain(network).c_str());
}

ModelLoader::ModelLoader(GstElement* element, Loaded loaded)
    : element_(element), loaded_(std::move(loaded)) {}

ModelLoader::~ModelLoader() { stop(); }

void ModelLoader::start(Wanted wanted) {
  reset();
  const std::lock_guard lock(mutex_);
  started_ = true;
  stopping_ = false;
  display_ = wanted.display;
  begin(std::move(wanted));
  first_ = loadings_.back();
}

void ModelLoader::begin(Wanted wanted) {
  // Moves the model to the thread, because nothing there would catch a failure to copy.
  begin([this, wanted = std::move(wanted)](Loading& task) mutable {
    return load(std::move(wanted), task);
  });
}

// Begins `work` after the loading before it.
void ModelLoader::begin(Loading::Work work) {
  const std::shared_ptr<const Loading> before = loadings_.empty() ? nullptr : loadings_.back();
  // Nothing may throw once the thread runs: destroying its task would wait for the thread, which
  // waits for the lock.
  loadings_.reserve(loadings_.size() + 1);
  loadings_.push_back(
      std::make_shared<Loading>([this, before, work = std::move(work)](Loading& task) {
        pthread_setname_np(pthread_self(), "clinfer:compile");
        if (before != nullptr) {
          before->wait();
          forget_first();
          if (task.is_cancelled() || session() == nullptr) return std::shared_ptr<const Session>();
        }
        return work(task);
      }));
}

// Drops the first loading once it is over: it would keep its model alive, which others replace.
void ModelLoader::forget_first() {
  std::shared_ptr<const Loading> first;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  if (first_ != nullptr && first_->is_over()) first.swap(first_);
}

bool ModelLoader::replace(const Settings& settings) {
  forget_first();
  std::vector<std::shared_ptr<Loading>> ended;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  if (!started_ || stopping_) return false;
  ended = take_ended();
  begin(Wanted{settings, {}, display_});
  // Keeps the first loading, whose model is needed if this one fails.
  for (const auto& loading : loadings_)
    if (loading != loadings_.back() && (has_full_ || loading != first_)) loading->cancel();
  return true;
}

// Removes the loadings that are over, and returns them.
std::vector<std::shared_ptr<ModelLoader::Loading>> ModelLoader::take_ended() {
  const auto first_ended = std::stable_partition(
      loadings_.begin(), loadings_.end(), [](const auto& loading) { return !loading->is_over(); });
  std::vector<std::shared_ptr<Loading>> ended(first_ended, loadings_.end());
  loadings_.erase(first_ended, loadings_.end());
  return ended;
}

void ModelLoader::adopt(std::shared_ptr<SharedModel> variant) {
  forget_first();
  std::vector<std::shared_ptr<Loading>> ended;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  if (!started_ || stopping_) return;
  ended = take_ended();
  const auto fail = [element = element_](const Failure& failure) {
    GST_WARNING_OBJECT(element, "the model stays as it is: %s", failure.what);
  };
  const auto work = [this, variant = std::move(variant), fail](Loading&) {
    guard(fail, false, [&] {
      const std::shared_ptr<const Session> now = session();
      if (now != nullptr && now->shared != variant && now->shared->network == variant->network)
        take_over(std::make_shared<const Session>(Session{now->network, variant, now->settings}));
      return true;
    });
    return std::shared_ptr<const Session>();
  };
  guard(fail, false, [&] {
    begin(work);
    return true;
  });
}

void ModelLoader::use(std::shared_ptr<const Session> session) {
  reset();
  const std::lock_guard lock(mutex_);
  started_ = has_full_ = true;
  stopping_ = false;
  display_ = session->shared->display;
  session_ = std::move(session);
}

void ModelLoader::stop() {
  std::vector<std::shared_ptr<Loading>> stopped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& loading : loadings_) loading->cancel();
    stopped.swap(loadings_);
  }
  for (const auto& loading : stopped) loading->wait();
}

void ModelLoader::reset() {
  stop();
  std::shared_ptr<const Session> dropped;  // destroyed after the lock is released
  std::shared_ptr<const Loading> ended;
  const std::lock_guard lock(mutex_);
  dropped.swap(session_);
  ended.swap(first_);
  display_ = nullptr;
  started_ = has_full_ = false;
}

bool ModelLoader::is_started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

std::shared_ptr<const SurfaceDisplay> ModelLoader::display() const {
  const std::lock_guard lock(mutex_);
  return display_;
}

std::shared_ptr<const Session> ModelLoader::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

std::shared_ptr<const Session> ModelLoader::wait() const {
  const std::stop_token interrupted = interruption_.token();
  std::shared_ptr<const Loading> first;
  {
    const std::lock_guard lock(mutex_);
    first = first_;
  }
  if (first != nullptr) first->wait_for_result(interrupted);
  return interrupted.stop_requested() ? nullptr : session();
}

bool ModelLoader::is_over() const {
  const std::lock_guard lock(mutex_);
  return started_ && (first_ == nullptr || first_->is_over() || first_->newest() != nullptr);
}

// Tells the application of the progress, and takes over models that compute meanwhile.
class ModelLoader::Watch final : public LoadWatch {
 public:
  Watch(ModelLoader& loader, const Wanted& wanted, Loading& task)
      : loader_(loader), wanted_(wanted), task_(task) {}

  bool goes_on(const CompileProgress& progress) override {
    if (pacer_.is_due()) tell(progress);
    return !task_.is_cancelled();
  }
  void take_interim(std::shared_ptr<SharedModel> shared) override {
    if (task_.is_cancelled()) return;
    // Completes the progress, because gst-launch and others stay PAUSED as long as something is
    // under way.
    has_first_ = true;
    loader_.post_progress(GST_PROGRESS_TYPE_COMPLETE,
                          text_of_tier(*shared->compiled, wanted_.network.name, false).c_str());
    auto session = std::make_shared<const Session>(
        Session{wanted_.network, std::move(shared), wanted_.settings});
    loader_.take_over(session);
    task_.offer(std::move(session));
  }

 private:
  void tell(const CompileProgress& progress) {
    const std::string text = progress.tuning
                                 ? tuning_text(*progress.tuning)
                                 : progress.what + " (" + std::to_string(progress.step) + " of " +
                                       std::to_string(progress.of) + ")";
    if (has_first_ || progress.what.empty() || std::exchange(told_, text) == text) return;
    loader_.post_progress(GST_PROGRESS_TYPE_CONTINUE, text.c_str());
    if (progress.tuning)
      gst_element_post_message(loader_.element_,
                               gst_message_new_element(GST_OBJECT(loader_.element_),
                                                       tuning_structure(*progress.tuning)));
  }

  ModelLoader& loader_;
  const Wanted& wanted_;
  Loading& task_;
  Pacer pacer_;
  bool has_first_ = false;
  std::string told_;
};

std::shared_ptr<const Session> ModelLoader::load(Wanted wanted, Loading& task) {
  const auto fail = [&](const Failure& failure) {
    task.offer(nullptr);
    if (failure.code == ErrorCode::cancelled && (task.is_cancelled() || is_leaving()))
      return post_progress(GST_PROGRESS_TYPE_CANCELED, "Compiling was stopped");
    post_progress(GST_PROGRESS_TYPE_ERROR, failure.what);
    if (const std::shared_ptr<const Session> kept = session())
      GST_ELEMENT_WARNING(element_, RESOURCE, SETTINGS,
                          ("model=%s is not taken, %s stays: %s", wanted.settings.model.c_str(),
                           kept->settings.model.c_str(), failure.what),
                          (nullptr));
    else
      post_error(element_, failure);
  };
  return guard(fail, std::shared_ptr<const Session>(), [&] {
    const ExitWaits exit_waits;
    const bool is_described = wanted.network.model != nullptr;
    if (!is_described) wanted.network = describe_network(wanted.settings);
    post_progress(GST_PROGRESS_TYPE_START, ("Compiling " + wanted.network.name).c_str());
    if (!is_described) say_what_was_settled(element_, wanted.network, wanted.settings);
    return compile(wanted, task);
  });
}

std::shared_ptr<const Session> ModelLoader::compile(const Wanted& wanted, Loading& task) {
  const std::shared_ptr<const Session> previous = session();
  std::shared_ptr<const Session> session;
  try {
    Watch watch(*this, wanted, task);
    session = std::make_shared<const Session>(
        Session{wanted.network,
                find_or_compile(wanted.network, wanted.settings, wanted.display,
                                previous != nullptr, watch),
                wanted.settings});
  } catch (...) {
    if (this->session() != previous) take_over(previous);
    throw;
  }
  report(*session);
  take_over(session);
  post_progress(GST_PROGRESS_TYPE_COMPLETE,
                text_of_tier(*session->shared->compiled, wanted.network.name, true).c_str());
  if (previous != nullptr)
    gst_element_post_message(
        element_, gst_message_new_element(
                      GST_OBJECT(element_),
                      gst_structure_new("clinfer-model", "model", G_TYPE_STRING,
                                        wanted.settings.model.c_str(), "previous", G_TYPE_STRING,
                                        previous->settings.model.c_str(), nullptr)));
  return session;
}

// Makes frames go to this session from now on; null: to none.
void ModelLoader::take_over(const std::shared_ptr<const Session>& session) {
  std::shared_ptr<const Session> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(session_, session);
    if (session != nullptr && !session->shared->is_interim) has_full_ = true;
  }
  if (session != nullptr) loaded_(*session, before.get());
}

void ModelLoader::report(const Session& session) {
  const CompiledModel& compiled = *session.shared->compiled;
  GST_INFO_OBJECT(element_, "%s on %s: %u streams, %zu requests, %zu kernels, %.0f ms to load",
                  session.network.name.c_str(), compiled.device().name.c_str(), compiled.streams(),
                  session.shared->batcher->requests(), compiled.kernel_count(), compiled.load_ms());
  const TuningReport& tuning = compiled.tuning();
  for (const LayerTuning& layer : tuning.layers) {
    if (!layer.lapsed.empty())
      GST_WARNING_OBJECT(element_, "%s: its record in %s is outdated: %s", layer.layer.c_str(),
                         tuning.file.c_str(), layer.lapsed.c_str());
    GST_DEBUG_OBJECT(element_, "%s: %s", layer.layer.c_str(), layer.kernel.c_str());
  }
  const auto outdated = std::find_if(tuning.layers.begin(), tuning.layers.end(),
                                     [](const auto& layer) { return !layer.lapsed.empty(); });
  if (outdated != tuning.layers.end())
    GST_ELEMENT_INFO(element_, RESOURCE, SETTINGS,
                     ("%zu of %zu records for %s in %s are outdated and not used (%s: %s); "
                      "tuning-mode=create measures these layers again",
                      tuning.lapsed, tuning.lapsed + tuning.hits, session.network.name.c_str(),
                      tuning.file.c_str(), outdated->layer.c_str(), outdated->lapsed.c_str()),
                     (nullptr));
  if (tuning.mode != TuningMode::disabled)
    GST_INFO_OBJECT(element_, "%s: %zu hits, %zu misses, %zu outdated, %zu measured, %zu reverted",
                    tuning.file.c_str(), tuning.hits, tuning.misses, tuning.lapsed, tuning.measured,
                    tuning.taken_back);
  if (tuning.gain > 0) GST_INFO_OBJECT(element_, "tuned over untuned: %.3f", tuning.gain);
  for (const std::string& warning : compiled.warnings())
    GST_ELEMENT_WARNING(element_, RESOURCE, SETTINGS, ("%s", warning.c_str()), (nullptr));
  say_problems(element_, *session.shared->compiled);
}

std::string text_of_tier(const CompiledModel& running, const std::string& network, bool for_good) {
  const DeviceInfo& device = running.device();
  const std::string name = device.id + ", " + device.name;
  if (for_good) return "Compiled " + network + " for " + name;
  return (running.tier() == Tier::first ? "The host" : name + ",") + " computes " + network +
         " until its kernels are compiled";
}

void say_problems(GstElement* element, CompiledModel& compiled) {
  for (const std::string& problem : compiled.take_problems())
    GST_ELEMENT_WARNING(element, RESOURCE, FAILED, ("%s", problem.c_str()), (nullptr));
}

void ModelLoader::post_progress(GstProgressType type, const char* text) const {
  gst_element_post_message(element_,
                           gst_message_new_progress(GST_OBJECT(element_), type, "compile", text));
}

}  // namespace clinfer
