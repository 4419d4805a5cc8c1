// State changes of the element: reading and compiling the model, and the statistics about it.
#include "gst/infer/element.h"
#include "gst/base/guard.h"
#include "gst/infer/tuning_messages.h"

GST_DEBUG_CATEGORY_EXTERN(clinfer_debug);
#define GST_CAT_DEFAULT clinfer_debug

namespace clinfer {
namespace {

// Frames that pass without inference wait in line behind one that is inferred; so many each.
constexpr unsigned kMostPassing = 8;

bool may_come_as_surfaces(GstPad* sink) {
  if constexpr (kHaveSurfaces) return may_send_surfaces(sink);
  return false;
}

constexpr auto kProgressInterval = std::chrono::milliseconds(200);

std::string path_reason_of(const SharedModel& shared, bool has_dmabuf, bool take_dmabufs) {
  if (has_dmabuf) {
    const std::string problem = take_dmabufs ? shared.dmabufs->problem() : "nv12-two-inputs=false";
    return problem.empty() ? "frames in DMABuf" : "frames in DMABuf are mapped: " + problem;
  }
  if (!shared.surface_problem.empty()) return shared.surface_problem;
  if (shared.display != nullptr) return "surfaces of " + shared.display->display.name;
  return "frames are in system memory, or nv12-two-inputs=false";
}

}  // namespace

Element::Element(GstElement* self, GstPad* sink, GstPad* src)
    : self_(self), sink_(sink), src_(src) {
  gst_video_info_init(&info_);
  gst_segment_init(&segment_, GST_FORMAT_TIME);
}

Element::~Element() {
  stop_compiling();
  queue_.clear();
}

Settings Element::settings() const {
  GST_OBJECT_LOCK(self_);
  Settings copy = settings_;
  GST_OBJECT_UNLOCK(self_);
  return copy;
}

size_t Element::frames_in_flight_for(const Settings& settings) const {
  const std::shared_ptr<const Session> session = current_session();
  const size_t streams = session != nullptr ? session->shared->batcher->device_streams()
                                            : std::max<size_t>(settings.throughput_streams, 1);
  const size_t requests = session != nullptr    ? session->shared->batcher->requests()
                          : settings.nireq != 0 ? settings.nireq
                                                : 2 * streams;
  const unsigned passing = settings.overload_policy == OverloadPolicy::skip_inference
                               ? kMostPassing
                               : std::clamp(settings.inference_interval, 1u, kMostPassing);
  // Batches beyond the requests stand ready, one for each stream of the device: the thread that
  // takes a finished one's results launches it at once, whichever stream was the faster.
  const size_t batch = session != nullptr ? session->shared->batcher->batch_size()
                                          : std::max(settings.batch_size, 1u);
  return (requests + streams) * batch * passing;
}

void Element::open() {
  const Settings current = settings();
  const Network network = describe_network(current);
  engine_config(network, current);  // complains about config= before data flows
  model_ = network.model;
  model_path_ = current.model;
}

void Element::prepare() {
  const Settings current = settings();
  if (model_ == nullptr || model_path_ != current.model) {
    if (current.model.empty()) throw Error{ErrorCode::bad_argument, "no model: set model=FILE.xml"};
    model_ = Model::read(current.model);
    model_path_ = current.model;
  }
  Network network = describe_network(model_, current);
  if (network.head.name == "none" && current.post_process == "auto")
    GST_ELEMENT_WARNING(
        self_, STREAM, FORMAT,
        ("%s: %s; frames get the raw tensors", model_->path().c_str(), network.head.reason.c_str()),
        ("set post-process=none if that is what you want"));
  GST_INFO_OBJECT(self_, "post-process %s (%s)", network.head.name.c_str(),
                  network.head.reason.c_str());
  statistics_.clear();
  service_time_.clear();
  live_ = false;
  frame_number_ = 0;
  dropped_ = asked_live_ = false;
  has_caps_ = has_surfaces_ = has_dmabuf_ = false;
  warned_of_copies_ = asked_early_ = false;
  take_dmabufs_ = engine_config(network, current).nv12_two_inputs;
  take_surfaces_ = kHaveSurfaces && take_dmabufs_;
  network_ = network;

  std::shared_ptr<const Session> session = current_session();
  if (session != nullptr &&
      (session->network.model != model_ || session->shared->failed ||
       !engine_difference(session->shared->compiled_for, current).empty()))
    session.reset();
  if (session != nullptr) {
    // The engine's part serves; what the properties say about in- and outputs may have changed.
    session = std::make_shared<const Session>(Session{std::move(network), session->shared});
  }
  {
    const std::lock_guard lock(mutex_);
    session_ = session;
    compile_over_ = session != nullptr;
  }
  compiling_ = session != nullptr;
  display_ = session != nullptr ? session->shared->display : nullptr;
  if (session != nullptr) {
    queue_.set_capacity(frames_in_flight_for(current));
    return;
  }
  compile_settings_ = current;
  // The OpenCL context of surfaces is made on their display, which the first caps or frame bring.
  if (!take_surfaces_ || !may_come_as_surfaces(sink_)) compile_for(nullptr);
}

// Compiles for a display, or for none, unless that is done or under way. The session of another
// display serves no longer; frames that it has in flight keep it.
void Element::compile_for(std::shared_ptr<const SurfaceDisplay> display) {
  if (compiling_ && (display == nullptr ||
                     (display_ != nullptr && display_->display.handle == display->display.handle)))
    return;
  stop_compiling();
  {
    const std::lock_guard lock(mutex_);
    session_ = nullptr;
    compile_over_ = false;
  }
  compiling_ = true;
  display_ = std::move(display);
  cancel_ = false;
  worker_ = std::thread([this, settings = compile_settings_, network = network_,
                         display = display_] { compile(settings, network, display); });
}

void Element::warn_of_copies(const std::string& why) {
  if (!warned_of_copies_.exchange(true))
    GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS,
                        ("%s are copied through system memory: %s",
                         has_dmabuf_ ? "frames in DMABuf" : "VA surfaces", why.c_str()),
                        (nullptr));
}

void Element::compile(const Settings& settings, const Network& network,
                      std::shared_ptr<const SurfaceDisplay> display) {
  post_progress(GST_PROGRESS_TYPE_START, "Compiling " + network.name);
  guard(self_, [&] {
    Clock::time_point told = Clock::now();
    const Progress progress = [&](const std::string& what, size_t step, size_t of) {
      if (Clock::now() - told > kProgressInterval) {
        told = Clock::now();
        post_progress(GST_PROGRESS_TYPE_CONTINUE,
                      what + " (" + std::to_string(step) + " of " + std::to_string(of) + ")");
      }
      return !cancel_.load();
    };
    const TuningObserver observer = [&](const TuningStatus& status) {
      if (Clock::now() - told > kProgressInterval) {
        told = Clock::now();
        post_progress(GST_PROGRESS_TYPE_CONTINUE, tuning_text(status));
        gst_element_post_message(
            self_, gst_message_new_element(GST_OBJECT(self_), tuning_structure(status)));
      }
      return !cancel_.load();
    };
    try {
      const auto session = std::make_shared<const Session>(
          Session{network, find_or_compile(network, settings, display, progress, observer)});
      const CompiledModel& compiled = *session->shared->compiled;
      report_tuning(compiled.tuning());
      if (!session->shared->surface_problem.empty())
        warn_of_copies(session->shared->surface_problem);
      GST_INFO_OBJECT(self_, "%s on %s: %u streams, %zu requests, %zu kernels, %.0f ms to load",
                      network.name.c_str(), compiled.device().name.c_str(), compiled.streams(),
                      session->shared->batcher->requests(), compiled.kernel_count(),
                      compiled.load_ms());
      for (const std::string& warning : compiled.warnings())
        GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS, ("%s", warning.c_str()), (nullptr));
      {
        const std::lock_guard lock(mutex_);
        session_ = session;
      }
      queue_.set_capacity(frames_in_flight_for(settings));
      post_progress(GST_PROGRESS_TYPE_COMPLETE, "Compiled " + network.name + " for " +
                                                    compiled.device().id + ", " +
                                                    compiled.device().name);
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::cancelled || !cancel_.load()) {
        post_progress(GST_PROGRESS_TYPE_ERROR, error.what());
        throw;
      }
    }
    post_progress(GST_PROGRESS_TYPE_CANCELED, "Compiling was stopped");
  });
  // Only now, so that no frame, and no EOS, overtakes the messages.
  {
    const std::lock_guard lock(mutex_);
    compile_over_ = true;
  }
  session_ready_.notify_all();
}

void Element::report_tuning(const TuningReport& report) {
  for (const LayerTuning& layer : report.layers) {
    if (!layer.lapsed.empty())
      GST_WARNING_OBJECT(self_, "%s: its record in %s has lapsed: %s", layer.layer.c_str(),
                         report.file.c_str(), layer.lapsed.c_str());
    GST_DEBUG_OBJECT(self_, "%s: %s", layer.layer.c_str(), layer.kernel.c_str());
  }
  if (report.mode == TuningMode::disabled) return;
  GST_INFO_OBJECT(self_,
                  "%s: %zu hits, %zu misses, %zu lapsed, %zu measured, %zu of them taken back",
                  report.file.c_str(), report.hits, report.misses, report.lapsed, report.measured,
                  report.taken_back);
  if (report.gain > 0) GST_INFO_OBJECT(self_, "tuned over untuned: %.3f", report.gain);
}

void Element::post_progress(GstProgressType type, const std::string& text) {
  gst_element_post_message(
      self_, gst_message_new_progress(GST_OBJECT(self_), type, "compile", text.c_str()));
}

void Element::stop_compiling() {
  cancel_ = true;
  if (worker_.joinable()) worker_.join();
}

void Element::finish() {
  stop_compiling();
  queue_.clear();
}

void Element::close() {
  stop_compiling();
  std::shared_ptr<const Session> session;
  {
    const std::lock_guard lock(mutex_);
    session = std::move(session_);
  }
  model_.reset();
  model_path_.clear();
}

std::shared_ptr<const Session> Element::current_session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

std::shared_ptr<const Session> Element::wait_for_session() {
  std::unique_lock lock(mutex_);
  session_ready_.wait(lock, [&] { return flushing_ || compile_over_; });
  return flushing_ ? nullptr : session_;
}

DecodeSettings Element::decode_settings_for(const Network& network) const {
  GST_OBJECT_LOCK(self_);
  const DecodeSettings decode = decode_settings(network, settings_);
  GST_OBJECT_UNLOCK(self_);
  return decode;
}

DecodeSettings Element::decode_settings_in_force() const {
  const std::shared_ptr<const Session> session = current_session();
  return decode_settings_for(session != nullptr ? session->network : Network{});
}

GstStructure* Element::stats() const {
  static const char* const kStageNames[Statistics::kStages] = {"queue", "infer", "decode"};
  const Statistics::Snapshot snapshot = statistics_.snapshot();
  GstStructure* stats = gst_structure_new(
      "clinfer-stats", "frames-in", G_TYPE_UINT64, snapshot.frames_in, "frames-out", G_TYPE_UINT64,
      snapshot.frames_out, "inferred", G_TYPE_UINT64, snapshot.inferred, "skipped", G_TYPE_UINT64,
      snapshot.skipped, "late", G_TYPE_UINT64, snapshot.late, "dropped", G_TYPE_UINT64,
      snapshot.dropped, "in-flight", G_TYPE_UINT, static_cast<guint>(queue_.in_flight()),
      "frames-per-second", G_TYPE_DOUBLE, snapshot.frames_per_second, nullptr);
  for (size_t stage = 0; stage < Statistics::kStages; ++stage) {
    const std::string name = kStageNames[stage];
    const Percentiles& ms = snapshot.milliseconds[stage];
    gst_structure_set(stats, (name + "-p50-ms").c_str(), G_TYPE_DOUBLE, ms.p50,
                      (name + "-p95-ms").c_str(), G_TYPE_DOUBLE, ms.p95, (name + "-p99-ms").c_str(),
                      G_TYPE_DOUBLE, ms.p99, nullptr);
  }
  const std::shared_ptr<const Session> session = current_session();
  if (session == nullptr) return stats;
  const CompiledModel& compiled = *session->shared->compiled;
  const std::string path_reason =
      path_reason_of(*session->shared, has_dmabuf_.load(), take_dmabufs_);
  const ModelBatcher& batcher = *session->shared->batcher;
  const ModelBatcher::Counts counts = batcher.counts();
  gst_structure_set(
      stats, "model", G_TYPE_STRING, session->network.name.c_str(), "path", G_TYPE_STRING,
      snapshot.zero_copy != 0 ? "zero-copy" : "system memory", "path-reason", G_TYPE_STRING,
      path_reason.c_str(), "zero-copy-frames", G_TYPE_UINT64, snapshot.zero_copy, "fetched-frames",
      G_TYPE_UINT64, snapshot.fetched, "device", G_TYPE_STRING, compiled.device().name.c_str(),
      "precision", G_TYPE_STRING, compiled.precision() == Precision::f16 ? "f16" : "f32", "streams",
      G_TYPE_UINT, compiled.streams(), "nireq", G_TYPE_UINT, static_cast<guint>(batcher.requests()),
      "batch-size", G_TYPE_UINT, static_cast<guint>(batcher.batch_size()), "batches", G_TYPE_UINT64,
      counts.batches, "images", G_TYPE_UINT64, counts.frames, "post-process", G_TYPE_STRING,
      session->network.head.name.c_str(), "post-process-reason", G_TYPE_STRING,
      session->network.head.reason.c_str(), "load-ms", G_TYPE_DOUBLE, compiled.load_ms(),
      "cached-programs", G_TYPE_UINT, static_cast<guint>(compiled.cached_programs()),
      "built-programs", G_TYPE_UINT, static_cast<guint>(compiled.built_programs()), nullptr);
  static const char* const kHintNames[] = {"default", "low", "medium", "high"};
  gst_structure_set(stats, "priority", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.priority())], "throttle", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.throttle())], nullptr);
  add_tuning(stats, compiled.tuning());
  if (session->shared->compiled_for.perf_count) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const StepProfile& step : compiled.profile()) {
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_STRUCTURE);
      g_value_take_boxed(
          &value, gst_structure_new("layer", "name", G_TYPE_STRING, step.layer.c_str(), "type",
                                    G_TYPE_STRING, step.type.c_str(), "kernel", G_TYPE_STRING,
                                    step.kernel.c_str(), "device-us", G_TYPE_DOUBLE, step.device_us,
                                    "host-us", G_TYPE_DOUBLE, step.host_us, nullptr));
      gst_value_list_append_and_take_value(&list, &value);
    }
    gst_structure_take_value(stats, "layers", &list);
  }
  return stats;
}

}  // namespace clinfer
