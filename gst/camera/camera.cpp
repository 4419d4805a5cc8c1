// Implements clcamera, a bin around uridecodebin. Errors inside become warnings: a thread of the
// bin takes the failed source away and makes a new one after a while, so that the other cameras of
// a pipeline go on. It does the same to a live source that is connected but gives no data.
#include "gst/camera/camera.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"

#define GST_CAT_DEFAULT clcamera_debug

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct CameraSettings {
  std::string uri;
  unsigned retry_after = 1000, retry_most = 30000;  // in milliseconds
  unsigned silent_after = 10000;                    // in milliseconds; 0: never
};

struct CameraState {
  // Members that the object lock guards:
  CameraSettings settings;
  clinfer::LostProperties lost;
  std::optional<CameraSettings> in_force;
  GstStructure* copy_stats(GstElement* element) const;

  GstPad* src = nullptr;  // the bin's own pad
  std::thread keeper;     // from READY to PAUSED and back

  mutable std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  bool ends = false;
  GstElement* source = nullptr;        // of this attempt; the bin owns it
  std::optional<std::string> problem;  // why the attempt failed, until a picture comes
  bool failed = false;                 // the attempt is over
  bool live = false, flows = false, ended = false;
  bool plays = false;   // the element is in PLAYING
  bool sends = false;   // the source has given data, compressed or not
  unsigned pushed = 0;  // pictures that are on their way downstream
  // The time from which silence counts: that of the last data, of the end of the last push
  // downstream, or of the beginning of the attempt or of PLAYING.
  Clock::time_point quiet_since;
  uint64_t failures = 0;
  unsigned failures_in_a_row = 0;
  Clock::time_point next_attempt;
};

}  // namespace

using GstClcamera = clinfer::Instance<GstBin, CameraState>;
using GstClcameraClass = GstBinClass;

G_DEFINE_TYPE(GstClcamera, gst_clcamera, GST_TYPE_BIN)

namespace {

const std::vector<clinfer::Property<CameraSettings>>& properties() {
  using S = CameraSettings;
  static const auto& rows = *new std::vector<clinfer::Property<S>>{
      clinfer::text<&S::uri>("uri", "URI", "The camera or video: a URI, or the path of a file"),
      clinfer::number<&S::retry_after>(
          "retry-after", "Retry after",
          "Milliseconds from a failure to the next attempt; doubles with each further failure", 1,
          G_MAXINT),
      clinfer::number<&S::retry_most>("retry-most", "Longest retry",
                                      "Most milliseconds between two attempts", 1, G_MAXINT),
      clinfer::number<&S::silent_after>(
          "silent-after", "Silent after",
          "Milliseconds without data after which a live source counts as failed (0: never); the "
          "first data of an attempt has at least 10 seconds",
          0, G_MAXINT)};
  return rows;
}

using Class = clinfer::ElementClass<GstClcamera, properties>;

GstStructure* CameraState::copy_stats(GstElement*) const {
  const std::lock_guard lock(mutex);
  const auto wait = std::chrono::duration_cast<milliseconds>(next_attempt - Clock::now()).count();
  GstStructure* stats = gst_structure_new("clcamera-stats", "state", G_TYPE_STRING,
                                          ended     ? "ended"
                                          : problem ? "failed"
                                          : flows   ? "playing"
                                                    : "connecting",
                                          "failures", G_TYPE_UINT64, failures, nullptr);
  if (problem)
    gst_structure_set(stats, "problem", G_TYPE_STRING, problem->c_str(), "retry-in-ms",
                      G_TYPE_UINT64, static_cast<guint64>(std::max<int64_t>(wait, 0)), nullptr);
  return stats;
}

// Ends the attempt of `source`; later failures of it count no more.
void fail(GstBin* bin, GstObject* source, std::string why) {
  CameraState& state = Class::state(bin);
  {
    const std::lock_guard lock(state.mutex);
    if (state.ends || state.failed || state.ended || GST_OBJECT(state.source) != source) return;
    state.failed = true;
    state.flows = false;
    state.problem = std::move(why);
    ++state.failures;
    ++state.failures_in_a_row;
  }
  state.changed.notify_all();
}

// Returns the element that uridecodebin is in this bin, of which `object` is a part; null: none.
GstObject* source_of(GstBin* bin, GstObject* object) {
  for (GstObject* at = object; at != nullptr; at = GST_OBJECT_PARENT(at))
    if (GST_OBJECT_PARENT(at) == GST_OBJECT(bin)) return at;
  return nullptr;
}

void handle_message(GstBin* bin, GstMessage* message) {
  GstObject* const source = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR
                                ? source_of(bin, GST_MESSAGE_SRC(message))
                                : nullptr;
  if (source == nullptr) {
    GST_BIN_CLASS(gst_clcamera_parent_class)->handle_message(bin, message);
    return;
  }
  clinfer::guard(GST_ELEMENT(bin), [&] {
    GError* parsed = nullptr;
    gst_message_parse_error(message, &parsed, nullptr);
    const clinfer::Handle<GError> error(parsed);
    fail(bin, source, error != nullptr ? error->message : "unknown error");
  });
  gst_message_unref(message);
}

// Returns a URI without user and password, for messages.
std::string public_uri(const std::string& uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return uri;
  const size_t host = scheme + 3;
  const size_t user = uri.substr(0, uri.find('/', host)).rfind('@');
  return user == std::string::npos || user < host ? uri
                                                  : uri.substr(0, host) + uri.substr(user + 1);
}

bool is_live(GstPad* pad) {
  const clinfer::Handle<GstQuery> query(gst_query_new_latency());
  gboolean live = FALSE;
  if (gst_pad_query(pad, query.get()))
    gst_query_parse_latency(query.get(), &live, nullptr, nullptr);
  return live;
}

// Watches what passes the pad of one attempt.
GstPadProbeReturn look(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
  auto* bin = static_cast<GstBin*>(data);
  GstPadProbeReturn verdict = GST_PAD_PROBE_OK;
  clinfer::guard(GST_ELEMENT(bin), [&] {
    CameraState& state = Class::state(bin);
    GstObject* const source = source_of(bin, GST_OBJECT(pad));
    std::unique_lock lock(state.mutex);
    if (state.failed || GST_OBJECT(state.source) != source) {
      verdict = GST_PAD_PROBE_DROP;  // the rest of an attempt that is over
    } else if ((info->type & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
      state.flows = true;
      state.problem.reset();
      state.failures_in_a_row = 0;
    } else if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS) {
      // A camera has no end.
      if (state.live || !state.flows) {
        verdict = GST_PAD_PROBE_DROP;
        const bool live = state.live;
        lock.unlock();
        fail(bin, source, live ? "the stream has ended" : "the stream ended before a picture");
      } else {
        state.ended = true;
      }
    }
  });
  return verdict;
}

// Marks the time that a push takes: while downstream takes a picture, the source is not silent.
class Pushing {
 public:
  explicit Pushing(GstObject* proxy)
      : state_(Class::find_state(GST_OBJECT_PARENT(GST_OBJECT_PARENT(proxy)))) {
    if (state_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    ++state_->pushed;
  }
  ~Pushing() {
    if (state_ == nullptr) return;
    const std::lock_guard lock(state_->mutex);
    --state_->pushed;
    state_->quiet_since = Clock::now();
  }
  Pushing(const Pushing&) = delete;
  Pushing& operator=(const Pushing&) = delete;

 private:
  CameraState* const state_;
};

// The chain functions of the inner side of the bin's pad, whose parent is that pad.
GstFlowReturn chain(GstPad* pad, GstObject* parent, GstBuffer* buffer) {
  const Pushing pushing(GST_OBJECT(pad));
  return gst_proxy_pad_chain_default(pad, parent, buffer);
}
GstFlowReturn chain_list(GstPad* pad, GstObject* parent, GstBufferList* list) {
  const Pushing pushing(GST_OBJECT(pad));
  return gst_proxy_pad_chain_list_default(pad, parent, list);
}

// The least time for the first data of an attempt: cameras and the buffers of receivers take
// seconds.
constexpr milliseconds kFirstData{10000};

// Returns whether a live source has given nothing for longer than the bound. The caller holds the
// state's lock.
bool is_silent(const CameraState& state, milliseconds bound) {
  if (bound.count() == 0 || !state.live || !state.plays || state.ended || state.failed ||
      state.pushed != 0)
    return false;
  return Clock::now() - state.quiet_since >= (state.sends ? bound : std::max(bound, kFirstData));
}

// Notes data at a pad of the element that uridecodebin reads from.
GstPadProbeReturn note_data(GstPad* pad, GstPadProbeInfo*, gpointer data) {
  auto* bin = static_cast<GstBin*>(data);
  clinfer::guard(GST_ELEMENT(bin), [&] {
    CameraState& state = Class::state(bin);
    GstObject* const source = source_of(bin, GST_OBJECT(pad));
    const std::lock_guard lock(state.mutex);
    if (GST_OBJECT(state.source) != source) return;
    state.sends = true;
    state.quiet_since = Clock::now();
  });
  return GST_PAD_PROBE_OK;
}

// Watches data at a pad of the element that uridecodebin reads from, unless the pad has something
// other than pictures, such as sound.
void watch_data(GstElement*, GstPad* pad, gpointer bin) {
  const clinfer::Handle<GstCaps> caps(gst_pad_get_current_caps(pad));
  const GstStructure* const structure = caps != nullptr && gst_caps_get_size(caps.get()) != 0
                                            ? gst_caps_get_structure(caps.get(), 0)
                                            : nullptr;
  const char* const media =
      structure != nullptr ? gst_structure_get_string(structure, "media") : nullptr;
  if (media != nullptr && g_str_equal(media, "video") == FALSE) return;
  gst_pad_add_probe(
      pad, static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST),
      note_data, bin, nullptr);
}

// Is called with the element that uridecodebin will read from.
void source_setup(GstElement*, GstElement* reader, gpointer bin) {
  gst_element_foreach_src_pad(
      reader,
      [](GstElement* element, GstPad* pad, gpointer of) -> gboolean {
        watch_data(element, pad, of);
        return TRUE;
      },
      bin);
  g_signal_connect(reader, "pad-added", G_CALLBACK(watch_data), bin);
}

// Returns whether the element that uridecodebin reads from, in PAUSED, gives data in PLAYING only.
// Pads with pictures come when there is data, which a silent camera never sends.
bool reads_live(GstElement* uridecodebin) {
  GstElement* found = nullptr;
  g_object_get(uridecodebin, "source", &found, nullptr);
  const clinfer::Handle<GstElement> reader(found);
  return reader != nullptr &&
         gst_element_get_state(reader.get(), nullptr, nullptr, 0) == GST_STATE_CHANGE_NO_PREROLL;
}

void pad_added(GstElement* source, GstPad* pad, gpointer data) {
  auto* bin = static_cast<GstBin*>(data);
  clinfer::guard(GST_ELEMENT(bin), [&] {
    CameraState& state = Class::state(bin);
    if (clinfer::Handle<GstPad>(gst_ghost_pad_get_target(GST_GHOST_PAD(state.src))) != nullptr)
      return;  // a second picture of the same source
    const bool live = is_live(pad);
    bool again = false;
    {
      const std::lock_guard lock(state.mutex);
      if (state.source != source || state.failed) return;
      state.live = live;
      again = state.failures != 0;
    }
    // A file begins at 0 again, and plays from now on.
    gint64 offset = 0;
    if (again && !live) {
      GstClock* const clock = gst_element_get_clock(GST_ELEMENT(bin));
      if (clock != nullptr) {
        offset = static_cast<gint64>(gst_clock_get_time(clock)) -
                 static_cast<gint64>(gst_element_get_base_time(GST_ELEMENT(bin)));
        gst_object_unref(clock);
      }
    }
    gst_pad_set_offset(pad, std::max<gint64>(offset, 0));
    gst_pad_add_probe(pad,
                      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER |
                                                   GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                      look, bin, nullptr);
    gst_ghost_pad_set_target(GST_GHOST_PAD(state.src), pad);
  });
}

void disconnect(GstBin* bin) {
  CameraState& state = Class::state(bin);
  GstElement* source = nullptr;
  {
    const std::lock_guard lock(state.mutex);
    std::swap(source, state.source);
  }
  if (source == nullptr) return;
  // The thread that pushes may be at work downstream: the state changes when it comes back.
  gst_element_set_locked_state(source, TRUE);
  gst_element_set_state(source, GST_STATE_NULL);
  gst_ghost_pad_set_target(GST_GHOST_PAD(state.src), nullptr);
  gst_bin_remove(bin, source);
}

void connect(GstBin* bin, const CameraSettings& settings) {
  CameraState& state = Class::state(bin);
  GstElement* const source = gst_element_factory_make("uridecodebin", nullptr);
  if (source == nullptr)
    throw clinfer::Error(clinfer::ErrorCode::not_found,
                         "GStreamer has no uridecodebin: install gstreamer1.0-plugins-base");
  clinfer::Handle<char> converted(settings.uri.find("://") == std::string::npos
                                      ? gst_filename_to_uri(settings.uri.c_str(), nullptr)
                                      : g_strdup(settings.uri.c_str()));
  const clinfer::Handle<GstCaps> pictures(gst_caps_from_string(clinfer::kAnyVideo));
  g_object_set(source, "uri", converted.get(), "caps", pictures.get(), "expose-all-streams", FALSE,
               nullptr);
  g_signal_connect(source, "pad-added", G_CALLBACK(pad_added), bin);
  g_signal_connect(source, "source-setup", G_CALLBACK(source_setup), bin);
  {
    const std::lock_guard lock(state.mutex);
    state.source = source;
    state.failed = state.live = state.flows = state.sends = false;
    state.quiet_since = Clock::now();
  }
  GST_INFO_OBJECT(bin, "begins to read its source");
  gst_bin_add(bin, source);
  gst_element_set_state(source, GST_STATE_PAUSED);
  if (reads_live(source)) {
    const std::lock_guard lock(state.mutex);
    state.live = true;
  }
  if (!gst_element_sync_state_with_parent(source))
    fail(bin, GST_OBJECT(source), "it cannot be started");
}

// Waits until an attempt has failed; returns false if the element stops.
bool wait_for_failure(GstBin* bin, milliseconds silent_after) {
  CameraState& state = Class::state(bin);
  const milliseconds between = silent_after.count() == 0
                                   ? milliseconds(std::chrono::hours(1))
                                   : std::max(silent_after / 8, milliseconds(10));
  std::unique_lock lock(state.mutex);
  while (!state.changed.wait_for(lock, between, [&] { return state.ends || state.failed; })) {
    if (!is_silent(state, silent_after)) continue;
    GstObject* const source = GST_OBJECT(state.source);
    lock.unlock();
    fail(bin, source, "it is connected, but sends nothing (silent-after)");
    lock.lock();
  }
  return !state.ends;
}

// Makes attempts until the element stops.
void keep(GstBin* bin, const CameraSettings& settings) {
  CameraState& state = Class::state(bin);
  for (;;) {
    connect(bin, settings);
    std::string why;
    milliseconds wait{};
    if (!wait_for_failure(bin, milliseconds(settings.silent_after))) return;
    {
      const std::lock_guard lock(state.mutex);
      why = *state.problem;
      const unsigned doublings = std::min(state.failures_in_a_row - 1, 20u);
      wait = milliseconds(std::min<uint64_t>(uint64_t{settings.retry_after} << doublings,
                                             std::max(settings.retry_after, settings.retry_most)));
      state.next_attempt = Clock::now() + wait;
    }
    GST_ELEMENT_WARNING(
        bin, RESOURCE, READ,
        ("%s failed and is tried again in %.1f s: %s", public_uri(settings.uri).c_str(),
         static_cast<double>(wait.count()) / 1000, why.c_str()),
        (nullptr));
    disconnect(bin);
    std::unique_lock lock(state.mutex);
    if (state.changed.wait_until(lock, state.next_attempt, [&] { return state.ends; })) return;
  }
}

void start(GstBin* bin) {
  CameraState& state = Class::state(bin);
  const CameraSettings settings = Class::settings(bin);
  if (settings.uri.empty())
    throw clinfer::Error(clinfer::ErrorCode::bad_argument, "set uri=URI of the camera");
  {
    const clinfer::ObjectLock lock(bin);
    state.in_force = settings;
  }
  {
    const std::lock_guard lock(state.mutex);
    state.ends = state.failed = state.live = state.flows = state.ended = false;
    state.problem.reset();
    state.failures = state.failures_in_a_row = 0;
  }
  state.keeper = std::thread(
      [bin, settings] { clinfer::guard(GST_ELEMENT(bin), [&] { keep(bin, settings); }); });
}

void stop(GstBin* bin) {
  CameraState* const state = Class::find_state(bin);
  if (state == nullptr || !state->keeper.joinable()) return;
  {
    const std::lock_guard lock(state->mutex);
    state->ends = true;
  }
  state->changed.notify_all();
  state->keeper.join();
  disconnect(bin);
  const clinfer::ObjectLock lock(bin);
  state->in_force.reset();
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  auto* bin = GST_BIN(element);
  const bool begins = transition == GST_STATE_CHANGE_READY_TO_PAUSED;
  if (begins && !clinfer::guard(element, false, [&] {
        start(bin);
        return true;
      }))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING ||
      transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    clinfer::guard(element, [&] {
      CameraState& state = Class::state(bin);
      const std::lock_guard lock(state.mutex);
      state.plays = transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING;
      state.quiet_since = Clock::now();
    });
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS(gst_clcamera_parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (begins && result == GST_STATE_CHANGE_FAILURE))
    clinfer::guard(element, [&] { stop(bin); });
  return result;
}

}  // namespace

static void gst_clcamera_class_init(GstClcameraClass* klass) {
  Class::set_up(klass,
                {"Camera that comes back", "Source/Network/Video",
                 "Decoded pictures of a camera or a video; one that fails is tried again while the "
                 "pipeline goes on",
                 CLINFER_DOCS "live-sources.md", nullptr},
                "State (connecting, playing, failed, ended), failures so far, what the problem is "
                "and when it is tried again");
  GST_ELEMENT_CLASS(klass)->change_state = change_state;
  GST_BIN_CLASS(klass)->handle_message = handle_message;
}

static void gst_clcamera_init(GstClcamera* self) {
  Class::make_state(self);
  GstElementClass* const klass = GST_ELEMENT_GET_CLASS(self);
  GstPad* const src = gst_ghost_pad_new_no_target_from_template(
      "src", gst_element_class_get_pad_template(klass, "src"));
  GstProxyPad* const inner = gst_proxy_pad_get_internal(GST_PROXY_PAD(src));
  gst_pad_set_chain_function(GST_PAD(inner), chain);
  gst_pad_set_chain_list_function(GST_PAD(inner), chain_list);
  gst_object_unref(inner);
  gst_element_add_pad(GST_ELEMENT(self), src);
  if (self->state != nullptr) self->state->src = src;
}

static gboolean register_clcamera(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clcamera", gst_clcamera_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clcamera, register_clcamera)
