// Compiling a model in the background: progress, tuning and warnings on the bus.
#include "gst/infer/model_loader.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/log.h"
#include "gst/infer/tuning_messages.h"
#include "kernels/base/leaving.h"
#include "kernels/base/threads.h"

#define GST_CAT_DEFAULT clinfer_loader_debug

namespace clinfer {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(200);

// True once per interval.
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

void ModelLoader::start(Task task) {
  reset();
  {
    const std::lock_guard lock(mutex_);
    started_ = busy_ = true;
    stopping_ = false;
    display_ = task.display;
    cancel_ = false;
  }
  begin(std::move(task));
}

void ModelLoader::begin(Task task) try {
  const std::lock_guard control(control_);
  if (thread_.joinable()) thread_.join();  // it has ended its loop
  // The task is moved, since nothing on the thread would catch a failure to copy it.
  thread_ = start_thread([this, task = std::move(task)]() mutable { loop(std::move(task)); });
} catch (...) {
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    over_ = true;
  }
  changed_.notify_all();
  throw;
}

bool ModelLoader::replace(const Settings& settings) {
  Task task{settings, {}, nullptr};
  {
    const std::lock_guard lock(mutex_);
    if (!started_ || stopping_) return false;
    task.display = display_;
    if (busy_) {
      pending_ = std::move(task);
      if (has_full_) cancel_ = true;  // the first model is needed if this one fails
      return true;
    }
    busy_ = true;
    cancel_ = false;
  }
  begin(std::move(task));
  return true;
}

void ModelLoader::use(std::shared_ptr<const Session> session) {
  reset();
  const std::lock_guard lock(mutex_);
  started_ = over_ = has_full_ = true;
  stopping_ = false;
  display_ = session->shared->display;
  session_ = std::move(session);
}

void ModelLoader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_ = true;
    pending_.reset();
  }
  const std::lock_guard control(control_);
  if (thread_.joinable()) thread_.join();
}

void ModelLoader::reset() {
  stop();
  std::shared_ptr<const Session> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  dropped = std::exchange(session_, nullptr);
  display_ = nullptr;
  started_ = over_ = has_first_ = has_full_ = false;
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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return interrupted_ || over_ || has_first_; });
  return interrupted_ ? nullptr : session_;
}

bool ModelLoader::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_ || has_first_;
}

void ModelLoader::set_interrupted(bool interrupted) {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
  }
  changed_.notify_all();
}

void ModelLoader::loop(Task task) {
  pthread_setname_np(pthread_self(), "clinfer:compile");
  for (std::optional<Task> next = std::move(task); next;) {
    run(std::move(*next));
    {
      const std::lock_guard lock(mutex_);
      next = std::exchange(pending_, std::nullopt);
      if (stopping_ || session_ == nullptr) next.reset();
      if (next)
        cancel_ = false;
      else
        busy_ = false;
      // Only after the messages, so that neither a frame nor EOS overtakes them.
      over_ = true;
    }
    changed_.notify_all();
  }
}

void ModelLoader::run(Task task) {
  const auto fail = [&](const Failure& failure) {
    if (failure.code == ErrorCode::cancelled && (cancel_.load() || is_leaving()))
      return post_progress(GST_PROGRESS_TYPE_CANCELED, "Compiling was stopped");
    post_progress(GST_PROGRESS_TYPE_ERROR, failure.what);
    if (const std::shared_ptr<const Session> kept = session())
      GST_ELEMENT_WARNING(element_, RESOURCE, SETTINGS,
                          ("model=%s is not taken, %s stays: %s", task.settings.model.c_str(),
                           kept->settings.model.c_str(), failure.what),
                          (nullptr));
    else
      post_error(element_, failure);
  };
  guard(fail, false, [&] {
    const ExitWaits exit_waits;
    const bool is_described = task.network.model != nullptr;
    if (!is_described) task.network = describe_network(task.settings);
    post_progress(GST_PROGRESS_TYPE_START, ("Compiling " + task.network.name).c_str());
    if (!is_described) say_what_was_settled(element_, task.network, task.settings);
    return compile(task), true;
  });
}

void ModelLoader::compile(const Task& task) {
  const std::shared_ptr<const Session> previous = session();
  Pacer pacer;
  std::atomic<bool> has_first{false};
  const Progress progress = [&](const std::string& what, size_t step, size_t of) {
    if (!has_first && pacer.is_due())
      post_progress(
          GST_PROGRESS_TYPE_CONTINUE,
          (what + " (" + std::to_string(step) + " of " + std::to_string(of) + ")").c_str());
    return !cancel_.load();
  };
  const TuningObserver observer = [&](const TuningStatus& status) {
    if (pacer.is_due()) {
      post_progress(GST_PROGRESS_TYPE_CONTINUE, tuning_text(status).c_str());
      gst_element_post_message(
          element_, gst_message_new_element(GST_OBJECT(element_), tuning_structure(status)));
    }
    return !cancel_.load();
  };
  const FirstShared first = [&](std::shared_ptr<SharedModel> shared, const std::string& why_not) {
    if (shared == nullptr)
      GST_DEBUG_OBJECT(element_, "%s has no first tier: %s", task.network.name.c_str(),
                       why_not.c_str());
    if (shared == nullptr || cancel_.load()) return;
    // gst-launch and others stay PAUSED for as long as something is under way.
    has_first = true;
    post_progress(GST_PROGRESS_TYPE_COMPLETE,
                  text_of_tier(*shared->compiled, task.network.name, false).c_str());
    take_over(
        std::make_shared<const Session>(Session{task.network, std::move(shared), task.settings}));
  };
  std::shared_ptr<const Session> session;
  try {
    session = std::make_shared<const Session>(
        Session{task.network,
                find_or_compile(task.network, task.settings, task.display, previous != nullptr,
                                progress, observer, first),
                task.settings});
  } catch (...) {
    if (this->session() != previous) take_over(previous);
    throw;
  }
  report(*session);
  take_over(session);
  post_progress(GST_PROGRESS_TYPE_COMPLETE,
                text_of_tier(*session->shared->compiled, task.network.name, true).c_str());
  if (previous != nullptr)
    gst_element_post_message(
        element_, gst_message_new_element(
                      GST_OBJECT(element_),
                      gst_structure_new("clinfer-model", "model", G_TYPE_STRING,
                                        task.settings.model.c_str(), "previous", G_TYPE_STRING,
                                        previous->settings.model.c_str(), nullptr)));
}

// From now on frames are for this session; null: for none.
void ModelLoader::take_over(const std::shared_ptr<const Session>& session) {
  std::shared_ptr<const Session> before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(session_, session);
    if (session == nullptr)
      has_first_ = false;
    else
      (session->shared->is_interim ? has_first_ : has_full_) = true;
  }
  changed_.notify_all();
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
