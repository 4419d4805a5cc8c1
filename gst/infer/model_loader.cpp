// Compiling a model in the background: progress, tuning and warnings on the bus.
#include "gst/infer/model_loader.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "gst/base/guard.h"
#include "gst/infer/tuning_messages.h"

GST_DEBUG_CATEGORY_EXTERN(clinfer_debug);
#define GST_CAT_DEFAULT clinfer_debug

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

ModelLoader::ModelLoader(GstElement* element,
                         std::function<void(const Session&, const Settings&)> loaded)
    : element_(element), loaded_(std::move(loaded)) {}

ModelLoader::~ModelLoader() { stop(); }

void ModelLoader::start(Task task) {
  reset();
  started_ = true;
  display_ = task.display;
  cancel_ = false;
  thread_ = std::thread([this, task = std::move(task)] { run(task); });
}

void ModelLoader::use(std::shared_ptr<const Session> session) {
  stop();
  started_ = true;
  display_ = session->shared->display;
  const std::lock_guard lock(mutex_);
  session_ = std::move(session);
  over_ = true;
}

void ModelLoader::stop() {
  cancel_ = true;
  if (thread_.joinable()) thread_.join();
}

void ModelLoader::reset() {
  stop();
  started_ = false;
  display_ = nullptr;
  std::shared_ptr<const Session> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  dropped = std::exchange(session_, nullptr);
  over_ = false;
}

std::shared_ptr<const Session> ModelLoader::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

std::shared_ptr<const Session> ModelLoader::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return interrupted_ || over_; });
  return interrupted_ ? nullptr : session_;
}

bool ModelLoader::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void ModelLoader::set_interrupted(bool interrupted) {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
  }
  changed_.notify_all();
}

void ModelLoader::run(const Task& task) {
  pthread_setname_np(pthread_self(), "clinfer:compile");
  post_progress(GST_PROGRESS_TYPE_START, "Compiling " + task.network.name);
  guard(element_, [&] {
    try {
      return compile(task);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled || !cancel_.load()) {
        post_progress(GST_PROGRESS_TYPE_ERROR, error.what());
        throw;
      }
    }
    post_progress(GST_PROGRESS_TYPE_CANCELED, "Compiling was stopped");
  });
  // Only after the messages, so that neither a frame nor EOS overtakes them.
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
}

void ModelLoader::compile(const Task& task) {
  Pacer pacer;
  const Progress progress = [&](const std::string& what, size_t step, size_t of) {
    if (pacer.is_due())
      post_progress(GST_PROGRESS_TYPE_CONTINUE,
                    what + " (" + std::to_string(step) + " of " + std::to_string(of) + ")");
    return !cancel_.load();
  };
  const TuningObserver observer = [&](const TuningStatus& status) {
    if (pacer.is_due()) {
      post_progress(GST_PROGRESS_TYPE_CONTINUE, tuning_text(status));
      gst_element_post_message(
          element_, gst_message_new_element(GST_OBJECT(element_), tuning_structure(status)));
    }
    return !cancel_.load();
  };
  const auto session = std::make_shared<const Session>(
      Session{task.network,
              find_or_compile(task.network, task.settings, task.display, progress, observer)});
  report(*session);
  {
    const std::lock_guard lock(mutex_);
    session_ = session;
  }
  loaded_(*session, task.settings);
  const DeviceInfo& device = session->shared->compiled->device();
  post_progress(GST_PROGRESS_TYPE_COMPLETE,
                "Compiled " + task.network.name + " for " + device.id + ", " + device.name);
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
}

void ModelLoader::post_progress(GstProgressType type, const std::string& text) const {
  gst_element_post_message(
      element_, gst_message_new_progress(GST_OBJECT(element_), type, "compile", text.c_str()));
}

}  // namespace clinfer
