// State changes of the element: reading and compiling the model, and the statistics about it.
#include <string_view>

#include "gst/base/guard.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/infer/clinfer.h"
#include "gst/infer/element.h"
#include "gst/infer/tuning_messages.h"
#include "kernels/base/threads.h"

#define GST_CAT_DEFAULT clinfer_debug

namespace clinfer {
namespace {

// Room in the queue for frames that are passed on without inference: they wait, so as to stay in
// order, until the inferred frame before them is done. Per inferred frame.
constexpr unsigned kMostPassing = 8;

// The field "devices": which device had how many inferences.
void add_devices(GstStructure* stats, const std::vector<Statistics::Device>& devices) {
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (const Statistics::Device& device : devices) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(
        &value, gst_structure_new("device", "id", G_TYPE_STRING, device.id.c_str(), "name",
                                  G_TYPE_STRING, device.name.c_str(), "inferences", G_TYPE_UINT64,
                                  device.inferences, nullptr));
    gst_value_list_append_and_take_value(&list, &value);
  }
  gst_structure_take_value(stats, "devices", &list);
}

bool may_come_as_surfaces(GstPad* sink) {
  if constexpr (kHaveSurfaces) return may_send_surfaces(sink);
  return false;
}

std::string path_reason_of(const SharedModel& shared, const MemoryKind* kind, bool take_imports,
                           bool copies_on_device, bool offers_cuda) {
  if (shared.compiled->tier() == Tier::first) return shared.compiled->sharing_problem();
  if (kind != nullptr) {
    const std::string frames = std::string("frames in ") + kind->name;
    const std::string problem =
        take_imports ? shared.importers.at(kind->handle)->problem() : "nv12-two-inputs=false";
    if (!problem.empty()) return frames + " are mapped: " + problem;
    return copies_on_device ? frames + " that cannot be exported are copied on the device" : frames;
  }
  if (offers_cuda)
    return "frames are in system memory: this build does not take the memory:CUDAMemory that "
           "upstream "
           "offers (it needs GStreamer 1.24 or newer, and -Dcuda=enabled)";
  if (!shared.surface_problem.empty()) return shared.surface_problem;
  if (shared.display != nullptr) return "surfaces of " + shared.display->display.name;
  return "frames are in system memory, or nv12-two-inputs=false";
}

}  // namespace

Element::Element(GstElement* self, GstPad* sink, GstPad* src)
    : self_(self),
      sink_(sink),
      src_(src),
      loader_(self,
              [this](const Session& session, const Session* previous) {
                if (!session.shared->surface_problem.empty())
                  warn_of_copies(session.shared->surface_problem);
                queue_.set_capacity(frames_in_flight_for(session.settings, &session));
                statistics_.watch(session.shared->compiled->devices());
                if (previous == nullptr) return;
                previous->shared->batcher->flush_partial_batch(stream_);
                const ObjectLock lock(self_);
                if (in_force_) in_force_ = session.settings;
              }),
      widths_(self) {
  gst_video_info_init(&info_);
  gst_segment_init(&segment_, GST_FORMAT_TIME);
}

Element::~Element() {
  loader_.stop();
  widths_.stop();
  queue_.clear();
}

Settings Element::settings() const {
  const ObjectLock lock(self_);
  return settings_;
}

void Element::set_property(guint id, const GValue* value) {
  const ElementProperty& property = property_of(element_properties(), id);
  Settings wanted;
  std::optional<Settings> in_force;
  {
    const ObjectLock lock(self_);
    lost_properties_.set(id, property, settings_, value);
    if (!in_force_) return;
    wanted = settings_;
    in_force = in_force_;
  }
  if (property.part == ElementProperty::Part::tickers) {
    const std::lock_guard lock(ticking_);
    start_tickers();
  }
  if (std::string_view(property.spec->name) == "model" && wanted.model != in_force->model)
    change_model(wanted);
  else if (property.part == ElementProperty::Part::rules)
    change_rules(wanted);
  else
    warn_unless_in_force<Settings>(self_, property, wanted, *in_force,
                                   "until the element starts again or takes another model");
}

// The network gets the frame's own size, so that it is read when the caps are known.
constexpr char kFrame[] = "frame";
static bool follows_frame(const Settings& settings) { return settings.reshape == kFrame; }

// Compiles another model beside the one that runs.
void Element::change_model(Settings settings) {
  if (const auto session = loader_.session(); follows_frame(settings) && session != nullptr)
    settings.reshape = session->settings.reshape;
  if (guard(self_, true, [&] { return loader_.replace(settings); })) return;
  GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS,
                      ("model cannot change before the first frame; in force until the element "
                       "starts again: %s",
                       model_path_.c_str()),
                      (nullptr));
}

// Takes new rules for objects, or says why not and keeps the old ones.
void Element::change_rules(const Settings& settings) {
  try {
    auto rules = std::make_shared<const ObjectRules>(settings);
    if (const std::shared_ptr<const Session> session = loader_.session())
      warn_of_unknown_classes(session->network, *rules);
    const ObjectLock lock(self_);
    rules_ = std::move(rules);
  } catch (const Error& error) {
    GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS, ("%s; the old value stays", error.what()),
                        (nullptr));
  }
}

void Element::warn_of_unknown_classes(const Network& network, const ObjectRules& rules) {
  for (const std::string& name : rules.unknown_names(network.labels))
    GST_ELEMENT_WARNING(self_, RESOURCE, SETTINGS,
                        ("%s in classes or thresholds is none of the %zu labels of %s",
                         name.c_str(), network.labels.size(), network.name.c_str()),
                        ("the first labels are %s, %s", network.labels[0].c_str(),
                         network.labels[network.labels.size() > 1 ? 1 : 0].c_str()));
}

size_t Element::frames_in_flight_for(const Settings& settings, const Session* session) const {
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

// The settings; throws Error where one of them could not be set.
Settings Element::checked_settings() const {
  const ObjectLock lock(self_);
  lost_properties_.check(element_properties());
  Settings settings = settings_;
  settle_config_file(settings.config, settings);
  return settings;
}

// The settings that a model is read with.
static std::string shape_wishes(const Settings& settings) {
  return settings.reshape + "/" + std::to_string(settings.clip_length) + "/" + settings.config_file;
}

// The settings for a model that is read, if its size does not follow the frame's. It does, too, where
// the model leaves it open and nothing states it: reshape=frame is what is left then.
Settings Element::settings_with_model() {
  Settings current = checked_settings();
  if (follows_frame(current)) return current;
  if (model_ != nullptr && model_path_ == current.model && model_reshape_ == shape_wishes(current))
    return current;
  try {
    model_ = read_model(current);
    model_path_ = current.model;
    model_reshape_ = shape_wishes(current);
  } catch (const Error&) {
    const bool whole = current.inference_region == RegionChoice::full_frame &&
                       current.regions.empty() && current.tiles.empty();
    if (!whole || !leaves_size_open(current)) throw;
    current.reshape = kFrame;
  }
  return current;
}

void Element::open() {
  const Settings current = settings_with_model();
  if (follows_frame(current)) {
    model_file(current.model);  // complains where there is none
    return;
  }
  engine_config(describe_network(model_, current), current);  // complains before data flows
}

void Element::prepare() {
  const Settings current = settings_with_model();
  Network network;
  const auto rules = std::make_shared<const ObjectRules>(current);
  follows_frame_ = follows_frame(current);
  if (follows_frame_) {
    model_.reset();
    if (checked_settings().reshape.empty())
      GST_ELEMENT_WARNING(
          self_, STREAM, FORMAT,
          ("%s: the model leaves the size of its picture open, and nothing states it; it gets the "
           "frame's, rounded up to multiples of 32; set reshape=WIDTHxHEIGHT where it is another",
           current.model.c_str()),
          (nullptr));
  } else {
    network = describe_network(model_, current);
    say_what_was_settled(self_, network, current);
    warn_of_unknown_classes(network, *rules);
  }
  statistics_.clear();
  widths_.clear();
  service_time_.clear();
  unreadable_.clear();
  live_ = false;
  frame_number_ = 0;
  clip_.clear();
  dropped_ = asked_live_ = warned_of_fields_ = warned_of_tiles_ = false;
  warned_of_transformation_ = false;
  has_caps_ = has_surfaces_ = false;
  kind_ = nullptr;
  told_of_device_copies_ = false;
  warned_of_copies_ = asked_early_ = false;
  take_imports_ =
      follows_frame_ ? current.nv12_two_inputs : engine_config(network, current).nv12_two_inputs;
  take_surfaces_ = kHaveSurfaces && take_imports_;
  network_ = network;
  {
    const ObjectLock lock(self_);
    in_force_ = current;
    rules_ = rules;
  }

  std::shared_ptr<const Session> session = loader_.session();
  if (session != nullptr &&
      (session->network.model != model_ || session->shared->failed || session->shared->is_interim ||
       !engine_difference(session->shared->compiled_for, current).empty()))
    session.reset();
  if (session != nullptr) {
    // The compiled model still serves; properties of its inputs and outputs may have changed.
    session =
        std::make_shared<const Session>(Session{std::move(network), session->shared, current});
    queue_.set_capacity(frames_in_flight_for(current, session.get()));
    statistics_.watch(session->shared->compiled->devices());
    return loader_.use(std::move(session));
  }
  loader_.reset();
  compile_settings_ = current;
  if (follows_frame_) return;
  // The OpenCL context for VA surfaces is made on their display, which comes with the first caps or
  // the first frame.
  if (!take_surfaces_ || !may_come_as_surfaces(sink_)) compile_for(nullptr);
}

// Compiles for a display, or for none, unless that is done or under way. A session for another
// display is dropped; frames in flight keep it until they are done.
void Element::compile_for(std::shared_ptr<const SurfaceDisplay> display) {
  const auto known = loader_.display();
  if (loader_.is_started() &&
      (display == nullptr ||
       (known != nullptr && known->display.handle == display->display.handle)))
    return;
  const std::shared_ptr<const Session> session = loader_.session();
  if (session != nullptr)  // perhaps with a model that was set while playing
    loader_.start({session->settings, session->network, std::move(display)});
  else
    loader_.start({compile_settings_, network_, std::move(display)});
}

// The size that a network gets where it follows the frame: whole cells of the coarsest level that
// networks have.
static std::string size_for(const GstVideoInfo& info) {
  const auto whole = [](int side) { return std::to_string((side + 31) / 32 * 32); };
  return whole(GST_VIDEO_INFO_WIDTH(&info)) + "x" + whole(GST_VIDEO_INFO_HEIGHT(&info));
}

// Where the network follows the frame and the frame's size is a new one: what was compiled for
// another is dropped. The loader reads and describes the model.
void Element::follow_frame() {
  if (!follows_frame_) return;
  const std::string size = size_for(info_);
  if (loader_.is_started() && compile_settings_.reshape == size) return;
  loader_.reset();
  compile_settings_.reshape = size;
}

void Element::finish() {
  {
    const ObjectLock lock(self_);
    in_force_.reset();
  }
  loader_.stop();
  widths_.stop();
  queue_.clear();
  if constexpr (kHaveCudaMemory) cuda_copier_.clear();
}

void Element::close() {
  loader_.reset();
  widths_.clear();
  model_.reset();
  model_path_.clear();
}

void Element::play(bool plays) {
  const std::lock_guard lock(ticking_);
  if (plays) statistics_.play();
  plays_ = plays;
  start_tickers();
}

// As the properties say, or none unless it plays.
void Element::start_tickers() {
  using std::chrono::milliseconds;
  // First, since a ticker keeps the element alive and what follows may fail.
  stats_ticker_.stop();
  frozen_ticker_.stop();
  if (!plays_) return;
  const Settings current = settings();
  if (current.stats_interval != 0)
    stats_ticker_.start(self_, milliseconds(current.stats_interval), [](GstElement* element) {
      guard(element, [&] { GST_CLINFER(element)->element->post_stats(); });
    });
  // A quarter of the bound late at most.
  if (current.frozen_after != 0)
    frozen_ticker_.start(
        self_, milliseconds(std::max(current.frozen_after / 4, 10u)), [](GstElement* element) {
          guard(element, [&] { GST_CLINFER(element)->element->look_for_frames(); });
        });
}

void Element::post_stats() {
  gst_element_post_message(self_, gst_message_new_element(GST_OBJECT(self_), stats()));
}

void Element::look_for_frames() {
  if (!live_.load() || at_end_.load()) return;
  const std::chrono::milliseconds bound(settings().frozen_after);
  const auto [change, age] = statistics_.look_for_frames(bound);
  if (change == Statistics::Change::none) return;
  const bool frozen = change == Statistics::Change::frozen;
  GST_INFO_OBJECT(self_, "%s for %lld ms", frozen ? "no frame" : "frames again; the last is",
                  static_cast<long long>(age.count()));
  gst_element_post_message(
      self_, gst_message_new_element(
                 GST_OBJECT(self_),
                 gst_structure_new("clinfer-frozen", "frozen", G_TYPE_BOOLEAN, frozen, "age-ms",
                                   G_TYPE_UINT64, static_cast<guint64>(age.count()), nullptr)));
}

DecodeSettings Element::decode_settings_in_force() const {
  const std::shared_ptr<const Session> session = loader_.session();
  return decode_settings(session != nullptr ? session->network : Network{}, settings());
}

GstStructure* Element::stats() const {
  static const char* const kStageNames[Statistics::kStages] = {"queue", "infer", "decode"};
  const Statistics::Snapshot snapshot = statistics_.snapshot();
  Handle<GstStructure> owner(gst_structure_new(
      "clinfer-stats", "frames-in", G_TYPE_UINT64, snapshot.frames_in, "frames-out", G_TYPE_UINT64,
      snapshot.frames_out, "inferred", G_TYPE_UINT64, snapshot.inferred, "skipped", G_TYPE_UINT64,
      snapshot.skipped, "late", G_TYPE_UINT64, snapshot.late, "dropped", G_TYPE_UINT64,
      snapshot.dropped, "unreadable", G_TYPE_UINT64, unreadable_.count(), "in-flight", G_TYPE_UINT,
      static_cast<guint>(queue_.in_flight()), "frames-per-second", G_TYPE_DOUBLE,
      snapshot.frames_per_second, "sink-age-ms", G_TYPE_DOUBLE, snapshot.in_age, "src-age-ms",
      G_TYPE_DOUBLE, snapshot.out_age, nullptr));
  GstStructure* const stats = owner.get();
  for (size_t stage = 0; stage < Statistics::kStages; ++stage) {
    const std::string name = kStageNames[stage];
    const Percentiles& ms = snapshot.milliseconds[stage];
    gst_structure_set(stats, (name + "-p50-ms").c_str(), G_TYPE_DOUBLE, ms.p50,
                      (name + "-p95-ms").c_str(), G_TYPE_DOUBLE, ms.p95, (name + "-p99-ms").c_str(),
                      G_TYPE_DOUBLE, ms.p99, nullptr);
  }
  const std::shared_ptr<const Session> session = loader_.session();
  if (session == nullptr) return owner.release();
  const CompiledModel& compiled = *session->shared->compiled;
  // Upstream is asked here and not when its caps come: some elements hold a lock then (aspectratiocrop).
  const bool offers_cuda = !kHaveCudaMemory && may_send(sink_, kCudaFeature);
  const std::string path_reason = path_reason_of(*session->shared, kind_, take_imports_,
                                                 snapshot.device_copies != 0, offers_cuda);
  const char* path = snapshot.zero_copy != 0       ? "zero-copy"
                     : snapshot.device_copies != 0 ? "device copy"
                                                   : "system memory";
  const ModelBatcher& batcher = *session->shared->batcher;
  const ModelBatcher::Counts counts = batcher.counts();
  gst_structure_set(
      stats, "model", G_TYPE_STRING, session->network.name.c_str(), "tier", G_TYPE_STRING,
      compiled.tier() == Tier::first ? "first" : "full", "path", G_TYPE_STRING, path, "path-reason",
      G_TYPE_STRING, path_reason.c_str(), "zero-copy-frames", G_TYPE_UINT64, snapshot.zero_copy,
      "device-copied-frames", G_TYPE_UINT64, snapshot.device_copies, "fetched-frames",
      G_TYPE_UINT64, snapshot.fetched, "device", G_TYPE_STRING, compiled.device().name.c_str(),
      "precision", G_TYPE_STRING, name_of(compiled.precision()), "launch", G_TYPE_STRING,
      compiled.launch().c_str(), "streams", G_TYPE_UINT, compiled.streams(), "nireq", G_TYPE_UINT,
      static_cast<guint>(batcher.requests()), "batch-size", G_TYPE_UINT,
      static_cast<guint>(batcher.batch_size()), "batches", G_TYPE_UINT64, counts.batches, "images",
      G_TYPE_UINT64, counts.frames, "post-process", G_TYPE_STRING,
      session->network.head.name.c_str(), "post-process-reason", G_TYPE_STRING,
      session->network.head.reason.c_str(), "interpretation", G_TYPE_STRING,
      explain(session->network).c_str(), "contradictions", G_TYPE_UINT64,
      session->network.trust->contradictions(), "load-ms", G_TYPE_DOUBLE, compiled.load_ms(),
      "cached-programs", G_TYPE_UINT, static_cast<guint>(compiled.cached_programs()),
      "built-programs", G_TYPE_UINT, static_cast<guint>(compiled.built_programs()), nullptr);
  if (const std::string widths = widths_.ready_widths(); !widths.empty())
    gst_structure_set(stats, "widths", G_TYPE_STRING, widths.c_str(), nullptr);
  static const char* const kHintNames[] = {"default", "low", "medium", "high"};
  gst_structure_set(stats, "priority", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.priority())], "throttle", G_TYPE_STRING,
                    kHintNames[static_cast<size_t>(compiled.throttle())], nullptr);
  add_devices(stats, snapshot.devices);
  add_tuning(stats, compiled.tuning());
  if (session->shared->counts_layers && compiled.tier() == Tier::full) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const StepProfile& step : compiled.profile()) {
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_STRUCTURE);
      g_value_take_boxed(
          &value, gst_structure_new("layer", "name", G_TYPE_STRING, step.layer.c_str(), "type",
                                    G_TYPE_STRING, step.type.c_str(), "kernel", G_TYPE_STRING,
                                    step.kernel.c_str(), "device-us", G_TYPE_DOUBLE, step.device_us,
                                    "host-us", G_TYPE_DOUBLE, step.host_us, "status", G_TYPE_STRING,
                                    name_of(step.status).c_str(), "fused-into", G_TYPE_STRING,
                                    step.fused_into.c_str(), "reason", G_TYPE_STRING,
                                    step.reason.c_str(), nullptr));
      gst_value_list_append_and_take_value(&list, &value);
    }
    gst_structure_take_value(stats, "layers", &list);
  }
  return owner.release();
}

// ---- activation and flushing --------------------------------------------------------------------

void Element::start_flush() {
  flow_ = GST_FLOW_FLUSHING;
  loader_.set_interrupted(true);
  stream_.interrupted = true;
  if (const auto session = loader_.session()) session->shared->batcher->interrupt(stream_);
  widths_.set_interrupted(true);
  widths_.interrupt(stream_);
  queue_.start_flush();
}

void Element::stop_flush() {
  loader_.set_interrupted(false);
  widths_.set_interrupted(false);
  stream_.interrupted = false;
  pending_starts_ = 0;
  dropping_ = false;
  flow_reported_ = false;
  flow_ = GST_FLOW_OK;
  queue_.stop_flush();
}

void Element::activate(bool sink, bool active) {
  if (active) {
    if (sink) {
      gst_segment_init(&segment_, GST_FORMAT_TIME);
      return;
    }
    {
      const ObjectLock lock(self_);
      qos_ = {};
    }
    stop_flush();
    try {
      start_task();
    } catch (...) {
      start_flush();
      throw;
    }
    return;
  }
  start_flush();
  if (!sink) gst_pad_stop_task(src_);
}

void Element::start_task() {
  const GstTaskFunction round = [](gpointer element) {
    auto* self = static_cast<Element*>(element);
    guard([self](const Failure& failure) { self->fail(failure); }, false,
          [self] { return self->task(), true; });
  };
  if (gst_pad_start_task(src_, round, this, nullptr)) return;
  // GStreamer takes a task without a thread for one that runs, and would wait for its end for ever:
  // the pad must not keep it.
  {
    const ObjectLock lock(src_);
    GST_PAD_TASK(src_) = nullptr;
  }
  throw no_more_threads();
}

}  // namespace clinfer
