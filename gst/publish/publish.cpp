// Implements clpublish: writes one JSON line for each frame, to a file that can be followed while
// it grows, or to a broker through a queue.
#include "gst/publish/publish.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>
#include <json-glib/json-glib.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "engine/heads/files/json_text.h"
#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/base/transforms.h"
#include "gst/meta/meta.h"
#include "gst/meta/notice.h"
#include "gst/publish/dl_streamer_line.h"
#include "gst/publish/line_file.h"
#include "gst/publish/result_line.h"
#include "gst/publish/sender.h"

#define GST_CAT_DEFAULT clpublish_debug

namespace {

enum class Method { file, mqtt, kafka, redis };
enum class Schema { clinfer, dl_streamer };

struct PublishSettings {
  Method method = Method::file;
  std::string file_path = "-";
  bool append = false;
  unsigned rotate_size = 0, rotate_interval = 0, flush_interval = 0;
  Schema schema = Schema::clinfer;
  bool add_tensor_data = false, add_empty_results = false;
  std::string source, tags;
  std::string address, topic = "clinfer";
  std::string credentials_file, ca_file, cert_file, key_file;
  unsigned queue_size = 100000;  // in messages
  std::string queue_dir;
  clinfer::QueuePolicy queue_policy = clinfer::QueuePolicy::block;
};

struct PublishState {
  PublishState() { gst_video_info_init(&info); }
  GstStructure* copy_stats(GstElement* element) const;
  // Members that the object lock guards:
  PublishSettings settings;
  clinfer::LostProperties lost;
  std::optional<PublishSettings> in_force;  // set between start and stop
  GstVideoInfo info;
  // One of these two exists from start to stop.
  std::unique_ptr<clinfer::LineFile> file;
  std::shared_ptr<clinfer::Sender> sender;  // changed under the object lock only
  std::atomic<uint64_t> frames = 0;
  clinfer::FrameFacts facts;                            // facts that are the same for all frames
  decltype(&clinfer::result_line) make_line = nullptr;  // set between start and stop
  bool asked_live = false, live = false;
  clinfer::RoiNotice roi_notice;
};

// Copies the pointer, because the sender may be stopped meanwhile.
GstStructure* PublishState::copy_stats(GstElement* element) const {
  std::shared_ptr<clinfer::Sender> used;
  {
    const clinfer::ObjectLock lock(element);
    used = sender;
  }
  GstStructure* stats =
      gst_structure_new("clpublish-stats", "frames", G_TYPE_UINT64, frames.load(), nullptr);
  if (used == nullptr) return stats;
  const clinfer::SenderStats counts = used->stats();
  gst_structure_set(stats, "sent", G_TYPE_UINT64, counts.sent, "queued", G_TYPE_UINT64,
                    counts.queued, "dropped", G_TYPE_UINT64, counts.dropped, "connection-losses",
                    G_TYPE_UINT64, counts.losses, "connected", G_TYPE_BOOLEAN, counts.connected,
                    nullptr);
  return stats;
}

}  // namespace

using GstClpublish = clinfer::Instance<GstBaseTransform, PublishState>;
using GstClpublishClass = GstBaseTransformClass;

G_DEFINE_TYPE(GstClpublish, gst_clpublish, GST_TYPE_BASE_TRANSFORM)

namespace {

using clinfer::Property;

#ifdef CLINFER_HAVE_MQTT
constexpr const char* kMqtt = "Messages to an MQTT broker, with QoS 1";
#else
constexpr const char* kMqtt = "MQTT: not built in, it needs libpaho-mqtt-dev";
#endif
#ifdef CLINFER_HAVE_KAFKA
constexpr const char* kKafka = "Messages to a Kafka topic, with acks=all";
#else
constexpr const char* kKafka = "Kafka: not built in, it needs librdkafka-dev";
#endif
#ifdef CLINFER_HAVE_REDIS_TLS
constexpr const char* kRedis = "Entries of a Redis stream, by XADD, also with TLS";
#elif defined CLINFER_HAVE_REDIS
constexpr const char* kRedis = "Entries of a Redis stream, by XADD; TLS needs hiredis 1.0";
#else
constexpr const char* kRedis = "Redis: not built in, it needs libhiredis-dev";
#endif

// Makes an empty path mean standard output, too.
Property<PublishSettings> file_path_row() {
  Property<PublishSettings> row = clinfer::text<&PublishSettings::file_path>(
      "file-path", "File path",
      "File for the JSON lines, emptied at start (\"-\": standard output). A FIFO waits for its "
      "reader with the first frame");
  row.set = [](PublishSettings& settings, const GValue* value) {
    clinfer::read_value(value, settings.file_path);
    if (settings.file_path.empty()) settings.file_path = PublishSettings{}.file_path;
  };
  return row;
}

const std::vector<Property<PublishSettings>>& properties() {
  using S = PublishSettings;
  static const auto& rows = *new std::vector<Property<S>>{
      clinfer::choice<&S::method>("method", "Method", "Destination of the results",
                                  "GstClpublishMethod",
                                  {{Method::file, "JSON lines to a file", "file"},
                                   {Method::mqtt, kMqtt, "mqtt"},
                                   {Method::kafka, kKafka, "kafka"},
                                   {Method::redis, kRedis, "redis"}}),
      clinfer::text<&S::address>(
          "address", "Address",
          "Address of the broker: HOST, HOST:PORT or SCHEME://HOST:PORT (mqtt, "
          "mqtts, redis, rediss, kafka, ssl); for Kafka also several, comma "
          "separated"),
      clinfer::text<&S::topic>("topic", "Topic",
                               "Topic of MQTT or Kafka, stream of Redis; {source} in it stands for "
                               "the property source"),
      clinfer::text<&S::credentials_file>(
          "credentials-file", "Credentials file",
          "File with lines username=NAME and password=SECRET for the broker"),
      clinfer::text<&S::ca_file>(
          "ca-file", "CA file",
          "CA certificates (PEM) that verify the broker; if set, the connection "
          "is encrypted"),
      clinfer::text<&S::cert_file>("cert-file", "Certificate file",
                                   "Client certificate (PEM), for brokers that verify clients"),
      clinfer::text<&S::key_file>("key-file", "Key file", "Private key (PEM) of cert-file"),
      clinfer::number<&S::queue_size>("queue-size", "Queue size",
                                      "Most messages that are kept while the broker is away", 1,
                                      G_MAXUINT),
      clinfer::text<&S::queue_dir>(
          "queue-dir", "Queue folder",
          "Folder where queued messages are kept, so that they outlive the process (unset: in "
          "memory only)"),
      clinfer::choice<&S::queue_policy>(
          "queue-policy", "Queue policy", "What happens when the queue is full",
          "GstClpublishQueuePolicy",
          {{clinfer::QueuePolicy::block, "Frames wait until there is room", "block"},
           {clinfer::QueuePolicy::drop_oldest, "The oldest message is dropped, and counted",
            "drop-oldest"}}),
      file_path_row(),
      clinfer::flag<&S::append>("append", "Append", "Append to the file instead of emptying it"),
      clinfer::number<&S::rotate_size>(
          "rotate-size", "Rotate by size",
          "Rename the file to FILE.DATE-TIME before it grows beyond this many MiB (0: never)", 0,
          G_MAXUINT),
      clinfer::number<&S::rotate_interval>(
          "rotate-interval", "Rotate by time",
          "Rename the file to FILE.DATE-TIME after this many seconds (0: never)", 0, G_MAXUINT),
      clinfer::number<&S::flush_interval>(
          "flush-interval", "Flush interval",
          "Lines may wait this many milliseconds to be written together (0: each at once)", 0,
          G_MAXUINT),
      clinfer::choice<&S::schema>(
          "schema", "Schema", "Keys of the lines", "GstClpublishSchema",
          {{Schema::clinfer, "All results, a line for each frame", "clinfer"},
           {Schema::dl_streamer,
            "The keys of DL Streamer 2026.2's gvametaconvert, a line for each frame with results",
            "dl-streamer"}}),
      clinfer::flag<&S::add_empty_results>(
          "add-empty-results", "Add empty results",
          "With schema=dl-streamer, also write lines of frames without results"),
      clinfer::flag<&S::add_tensor_data>("add-tensor-data", "Add tensor data",
                                         "Also write the values of tensors and maps"),
      clinfer::text<&S::source>("source", "Source", "Value of \"source\" in each line"),
      clinfer::text<&S::tags>("tags", "Tags",
                              "JSON value of \"tags\" in each line, such as '{\"site\": 7}'")};
  return rows;
}

using Class = clinfer::ElementClass<GstClpublish, properties>;

// Returns the tags in one line. Throws Error{bad_argument} for text that is no JSON.
std::string one_line(const std::string& tags) {
  if (tags.empty()) return "";
  try {
    const clinfer::JsonRoot root = clinfer::parse_json(tags);
    return clinfer::Handle<char>(json_to_string(root.get(), FALSE)).get();
  } catch (const clinfer::Error& error) {
    throw clinfer::Error{error.code(), "tags is no JSON: " + clinfer::printable(error.what())};
  }
}

void open_file(GstBaseTransform* transform, const PublishSettings& settings) {
  clinfer::LineFileSettings file;
  file.path = settings.file_path;
  file.append = settings.append;
  file.rotate_size = uint64_t{settings.rotate_size} << 20;
  file.rotate_interval = std::chrono::seconds(settings.rotate_interval);
  file.flush_interval = std::chrono::milliseconds(settings.flush_interval);
  Class::state(transform).file =
      std::make_unique<clinfer::LineFile>(file, [transform](const std::string& notice) {
        GST_ELEMENT_WARNING(transform, RESOURCE, BUSY, ("%s", notice.c_str()), (nullptr));
      });
}

// Returns the topic with the source inserted.
std::string topic_of(const PublishSettings& settings) {
  constexpr std::string_view kSource = "{source}";
  std::string topic = settings.topic;
  if (topic.empty()) throw clinfer::Error{clinfer::ErrorCode::bad_argument, "topic is empty"};
  for (size_t at = topic.find(kSource); at != std::string::npos;
       at = topic.find(kSource, at + settings.source.size())) {
    if (settings.source.empty())
      throw clinfer::Error{clinfer::ErrorCode::bad_argument,
                           "topic=" + clinfer::printable(settings.topic) +
                               " has {source} in it, but source is not set"};
    topic.replace(at, kSource.size(), settings.source);
  }
  return topic;
}

void connect(GstBaseTransform* transform, const PublishSettings& settings) {
  clinfer::BrokerSettings broker;
  broker.kind = settings.method == Method::mqtt    ? clinfer::BrokerKind::mqtt
                : settings.method == Method::kafka ? clinfer::BrokerKind::kafka
                                                   : clinfer::BrokerKind::redis;
  if (settings.address.empty())
    throw clinfer::Error{clinfer::ErrorCode::bad_argument,
                         "address is not set; name the broker as HOST:PORT"};
  broker.address = settings.address;
  broker.topic = topic_of(settings);
  broker.source = settings.source;
  broker.ca_file = settings.ca_file;
  broker.cert_file = settings.cert_file;
  broker.key_file = settings.key_file;
  if (!settings.credentials_file.empty()) {
    const clinfer::Credentials known = clinfer::read_credentials(settings.credentials_file);
    broker.user = known.user;
    broker.password = known.password;
    if (known.others_read)
      GST_ELEMENT_WARNING(
          transform, RESOURCE, SETTINGS,
          ("credentials-file %s can be read by other users", settings.credentials_file.c_str()),
          ("chmod 600 it"));
  }
  std::unique_ptr<clinfer::Journal> journal;
  if (!settings.queue_dir.empty()) {
    // Derives the journal's name from broker and topic, so that messages for another one stay
    // there.
    const std::string which = std::to_string(static_cast<int>(settings.method)) + "\n" +
                              settings.address + "\n" + broker.topic;
    const clinfer::Handle<char> name(
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, which.c_str(), -1));
    journal = std::make_unique<clinfer::Journal>(settings.queue_dir,
                                                 std::string(name.get()).substr(0, 16));
  }
  auto made = clinfer::make_broker(broker);
  auto queue = std::make_unique<clinfer::MessageQueue>(settings.queue_size, settings.queue_policy,
                                                       std::move(journal));
  auto sender = std::make_shared<clinfer::Sender>(
      std::move(made), std::move(queue), [transform](const std::string& notice) {
        GST_ELEMENT_WARNING(transform, RESOURCE, BUSY, ("%s", notice.c_str()), (nullptr));
      });
  const clinfer::ObjectLock lock(transform);
  Class::state(transform).sender = std::move(sender);
}

gboolean start(GstBaseTransform* transform) {
  return clinfer::guard(GST_ELEMENT(transform), FALSE, [&]() -> gboolean {
    PublishState& state = Class::state(transform);
    PublishSettings settings;
    {
      const clinfer::ObjectLock lock(transform);
      state.lost.check(properties());
      settings = state.settings;
      state.in_force = settings;
    }
    state.frames = 0;
    state.asked_live = false;
    state.facts = {};
    state.facts.source = settings.source;
    state.facts.tags = one_line(settings.tags);
    state.facts.tensor_data = settings.add_tensor_data;
    state.facts.empty_results = settings.add_empty_results;
    state.make_line =
        settings.schema == Schema::dl_streamer ? clinfer::dl_streamer_line : clinfer::result_line;
    if (settings.method == Method::file)
      open_file(transform, settings);
    else
      connect(transform, settings);
    return TRUE;
  });
}

gboolean stop(GstBaseTransform* transform) {
  PublishState* const state = Class::find_state(transform);
  if (state == nullptr) return TRUE;
  std::shared_ptr<clinfer::Sender> sender;  // destroyed after the lock is released
  {
    const clinfer::ObjectLock lock(transform);
    state->in_force.reset();
    sender = std::move(state->sender);
  }
  state->file.reset();
  return TRUE;
}

clinfer::LineFile* file_of(gpointer element) {
  PublishState* const state = Class::find_state(element);
  return state != nullptr ? state->file.get() : nullptr;
}

clinfer::Sender* sender_of(gpointer element) {
  PublishState* const state = Class::find_state(element);
  return state != nullptr ? state->sender.get() : nullptr;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  // Ends a wait for a reader, without which the pads cannot be deactivated.
  clinfer::LineFile* file = file_of(element);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY && file != nullptr) file->interrupt();
  clinfer::Sender* sender = sender_of(element);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY && sender != nullptr) sender->interrupt();
  return GST_ELEMENT_CLASS(gst_clpublish_parent_class)->change_state(element, change);
}

// Sends what is left at the end of the stream, because the application may quit at the EOS message.
void finish_sending(GstBaseTransform* transform, clinfer::Sender& sender) {
  if (sender.finish()) return;
  const auto queued = static_cast<unsigned long long>(sender.stats().queued);
  if (queued == 0) return;
  GST_ELEMENT_WARNING(
      transform, RESOURCE, BUSY,
      ("%llu messages are not with the broker at the end of the stream", queued),
      (sender.is_kept() ? "they stay in queue-dir for the next start"
                        : "they are lost when the element stops; queue-dir would keep them"));
}

gboolean sink_event(GstBaseTransform* transform, GstEvent* event) {
  if (clinfer::Sender* sender = sender_of(transform); sender != nullptr) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) sender->interrupt();
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) sender->resume();
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS)
      clinfer::guard(GST_ELEMENT(transform), [&] { finish_sending(transform, *sender); });
  }
  clinfer::LineFile* file = file_of(transform);
  if (file != nullptr) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) file->interrupt();
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) file->resume();
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS)
      clinfer::guard(GST_ELEMENT(transform), [&] { file->flush(); });
  }
  return GST_BASE_TRANSFORM_CLASS(gst_clpublish_parent_class)->sink_event(transform, event);
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return clinfer::read_size(in, Class::state(transform).info);
}

// ---- capture times ------------------------------------------------------------------------------

std::string iso_time(uint64_t unix_ns) {
  const auto seconds = static_cast<gint64>(unix_ns / GST_SECOND);
  GDateTime* time = g_date_time_new_from_unix_utc(seconds);
  if (time == nullptr) return "";
  const clinfer::Handle<char> text(g_date_time_format(time, "%Y-%m-%dT%H:%M:%S"));
  g_date_time_unref(time);
  char milliseconds[16];
  g_snprintf(milliseconds, sizeof milliseconds, ".%03uZ",
             static_cast<unsigned>(unix_ns % GST_SECOND / GST_MSECOND));
  return std::string(text.get()) + milliseconds;
}

std::optional<uint64_t> reference_time(GstBuffer* buffer, const char* caps_text) {
  const clinfer::Handle<GstCaps> caps(gst_caps_new_empty_simple(caps_text));
  const GstReferenceTimestampMeta* meta =
      gst_buffer_get_reference_timestamp_meta(buffer, caps.get());
  if (meta == nullptr || !GST_CLOCK_TIME_IS_VALID(meta->timestamp)) return std::nullopt;
  return meta->timestamp;
}

// Returns the time by the sender's clock, from RTCP (rtspsrc add-reference-timestamp-meta=true).
std::optional<uint64_t> sender_time(GstBuffer* buffer) {
  constexpr uint64_t kFrom1900To1970 = G_GUINT64_CONSTANT(2208988800) * GST_SECOND;
  const std::optional<uint64_t> ntp = reference_time(buffer, "timestamp/x-ntp");
  if (!ntp || *ntp < kFrom1900To1970) return std::nullopt;
  return *ntp - kFrom1900To1970;
}

// Returns the wall-clock time of a frame of a live source, which was captured when the pipeline's
// clock showed its running time.
std::optional<uint64_t> live_time(GstBaseTransform* transform, GstBuffer* buffer) {
  PublishState& state = Class::state(transform);
  if (!std::exchange(state.asked_live, true)) {
    GstQuery* query = gst_query_new_latency();
    gboolean live = FALSE;
    if (gst_pad_peer_query(GST_BASE_TRANSFORM_SINK_PAD(transform), query))
      gst_query_parse_latency(query, &live, nullptr, nullptr);
    gst_query_unref(query);
    state.live = live;
  }
  if (!state.live || !GST_BUFFER_PTS_IS_VALID(buffer)) return std::nullopt;
  const guint64 running =
      gst_segment_to_running_time(&transform->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  GstClock* clock = gst_element_get_clock(GST_ELEMENT(transform));
  if (clock == nullptr) return std::nullopt;
  const GstClockTime now = gst_clock_get_time(clock),
                     base = gst_element_get_base_time(GST_ELEMENT(transform));
  gst_object_unref(clock);
  if (!GST_CLOCK_TIME_IS_VALID(running) || !GST_CLOCK_TIME_IS_VALID(base)) return std::nullopt;
  const GstClockTimeDiff age = GST_CLOCK_DIFF(base + running, now);
  return static_cast<uint64_t>(g_get_real_time() * 1000 - age);
}

std::string capture_time(GstBaseTransform* transform, GstBuffer* buffer) {
  if (const auto time = reference_time(buffer, "timestamp/x-unix")) return iso_time(*time);
  if (const auto time = sender_time(buffer)) return iso_time(*time);
  if (GstVideoTimeCodeMeta* code = gst_buffer_get_video_time_code_meta(buffer)) {
    // Uses only a time code that includes the date.
    if (GDateTime* time = gst_video_time_code_to_date_time(&code->tc)) {
      GDateTime* utc = g_date_time_to_utc(time);
      const auto microseconds =
          g_date_time_to_unix(utc) * G_USEC_PER_SEC + g_date_time_get_microsecond(utc);
      g_date_time_unref(utc);
      g_date_time_unref(time);
      return iso_time(static_cast<uint64_t>(microseconds) * 1000);
    }
  }
  const auto time = live_time(transform, buffer);
  return time ? iso_time(*time) : "";
}

GstFlowReturn transform_ip(GstBaseTransform* transform, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(transform), GST_FLOW_ERROR, [&] {
    PublishState& state = Class::state(transform);
    clinfer::FrameFacts facts = state.facts;
    facts.number = state.frames++;
    facts.width = GST_VIDEO_INFO_WIDTH(&state.info);
    facts.height = GST_VIDEO_INFO_HEIGHT(&state.info);
    if (const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer)) {
      facts.width = static_cast<int>(crop->width);
      facts.height = static_cast<int>(crop->height);
    }
    if (GST_BUFFER_PTS_IS_VALID(buffer)) {
      const guint64 time =
          gst_segment_to_stream_time(&transform->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
      facts.timestamp = GST_CLOCK_TIME_IS_VALID(time) ? time : GST_BUFFER_PTS(buffer);
    }
    facts.sender_ntp_unix_ns = sender_time(buffer);
    facts.system_timestamp = capture_time(transform, buffer);
    const clinfer::FrameView frame = clinfer::read_frame(buffer, facts.width, facts.height);
    state.roi_notice.look(GST_ELEMENT(transform), frame);
    std::string line = state.make_line(facts, frame);
    if (line.empty()) return GST_FLOW_OK;
    if (state.sender != nullptr)
      return state.sender->publish(std::move(line)) ? GST_FLOW_OK : GST_FLOW_FLUSHING;
    return state.file->write(line) ? GST_FLOW_OK : GST_FLOW_FLUSHING;
  });
}

}  // namespace

static void gst_clpublish_class_init(GstClpublishClass* klass) {
  auto* element = GST_ELEMENT_CLASS(klass);
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  clinfer::register_result_meta();
  Class::set_up(
      klass,
      {"Inference result publisher", "Filter/Metadata/Video",
       "Writes the results on each frame as a line of JSON to a file or a broker (MQTT, Kafka, "
       "Redis)",
       CLINFER_DOCS "metadata.md"},
      "Frames; with a broker also messages sent (confirmed), queued and "
      "dropped, losses of the connection, and whether it is connected");
  element->change_state = change_state;
  transform->sink_event = sink_event;
  transform->start = start;
  transform->stop = stop;
  transform->set_caps = set_caps;
  transform->transform_ip = transform_ip;
}

static void gst_clpublish_init(GstClpublish* self) {
  Class::make_state(self);
  gst_base_transform_set_passthrough(GST_BASE_TRANSFORM(self), TRUE);
}

static gboolean register_clpublish(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clpublish", gst_clpublish_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clpublish, register_clpublish)
