// Negotiates with a viewer by webrtcbin, and feeds the encoder.
#include "gst/metrics/viewer.h"

#include <gst/sdp/sdp.h>
#include <gst/webrtc/webrtc.h>

#include <utility>

#include "gst/base/guard.h"
#include "gst/metrics/elements.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

// A viewer has this long for its connection. Afterwards it reports what it has received each second
// (browsers) or each five (GStreamer); one that is silent has left.
constexpr int64_t kConnectUs = 10 * G_USEC_PER_SEC, kSilentUs = 20 * G_USEC_PER_SEC;
// A picture that was lost, for instance before the connection stood, is made up for by then.
constexpr int64_t kRepeatUs = G_USEC_PER_SEC;

// Names of the messages by which webrtcbin's threads tell this one how the negotiation goes.
constexpr char kGathered[] = "clinfer-gathered", kRefused[] = "clinfer-refused";

struct FreeSdp {
  void operator()(GstSDPMessage* sdp) const { gst_sdp_message_free(sdp); }
  void operator()(GstWebRTCSessionDescription* description) const {
    gst_webrtc_session_description_free(description);
  }
};
using Sdp = std::unique_ptr<GstSDPMessage, FreeSdp>;
using Description = std::unique_ptr<GstWebRTCSessionDescription, FreeSdp>;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::bad_argument, "the offer " + why);
}

// Returns the offer without addresses: names in them would be looked up, and checks would be sent
// to wherever they say. The viewer's own checks tell where it is.
Sdp read_offer(const std::string& text) {
  GstSDPMessage* message = nullptr;
  gst_sdp_message_new(&message);
  Sdp offer(message);
  if (text.empty() ||
      gst_sdp_message_parse_buffer(reinterpret_cast<const guint8*>(text.data()),
                                   static_cast<guint>(text.size()), message) != GST_SDP_OK ||
      gst_sdp_message_medias_len(message) == 0)
    refuse("is not SDP");
  if (gst_sdp_message_medias_len(message) != 1 ||
      g_strcmp0(gst_sdp_media_get_media(gst_sdp_message_get_media(message, 0)), "video") != 0)
    refuse("has to be for one video and nothing else");
  auto* media = const_cast<GstSDPMedia*>(gst_sdp_message_get_media(message, 0));
  for (guint i = gst_sdp_media_attributes_len(media); i-- > 0;) {
    const char* key = gst_sdp_media_get_attribute(media, i)->key;
    if (g_strcmp0(key, "candidate") == 0 || g_strcmp0(key, "end-of-candidates") == 0)
      gst_sdp_media_remove_attribute(media, i);
  }
  return offer;
}

// Returns the number by which the offer's packets of VP8 are told.
int payload_of_vp8(const GstSDPMessage* offer) {
  const GstSDPMedia* media = gst_sdp_message_get_media(offer, 0);
  for (guint i = 0; i < gst_sdp_media_formats_len(media); ++i) {
    const int payload =
        static_cast<int>(g_ascii_strtoll(gst_sdp_media_get_format(media, i), nullptr, 10));
    const Handle<GstCaps> caps(gst_sdp_media_get_caps_from_media(media, payload));
    if (caps == nullptr) continue;
    const char* name =
        gst_structure_get_string(gst_caps_get_structure(caps.get(), 0), "encoding-name");
    if (name != nullptr && g_ascii_strcasecmp(name, "VP8") == 0) return payload;
  }
  refuse("has no VP8");
}

// Posts a message about the negotiation. May be called from any thread.
void tell(GstElement* peer, const char* name) {
  gst_element_post_message(
      peer, gst_message_new_application(GST_OBJECT(peer), gst_structure_new_empty(name)));
}

void unref_element(gpointer element) { gst_object_unref(element); }

// Is called when webrtcbin has made an answer or failed to.
void on_answer(GstPromise* promise, gpointer element) {
  auto* peer = GST_ELEMENT(element);
  const GstStructure* reply = gst_promise_wait(promise) == GST_PROMISE_RESULT_REPLIED
                                  ? gst_promise_get_reply(promise)
                                  : nullptr;
  GstWebRTCSessionDescription* answer = nullptr;
  if (reply != nullptr)
    gst_structure_get(reply, "answer", GST_TYPE_WEBRTC_SESSION_DESCRIPTION, &answer, nullptr);
  const Description owner(answer);
  gst_promise_unref(promise);
  if (answer == nullptr) return tell(peer, kRefused);
  GstPromise* done = gst_promise_new();
  g_signal_emit_by_name(peer, "set-local-description", answer, done);
  gst_promise_unref(done);
}

// Is called when webrtcbin has taken the offer or refused it. Asks for an answer, or tells of the
// refusal.
void on_offer(GstPromise* promise, gpointer element) {
  auto* peer = GST_ELEMENT(element);
  const bool is_taken = gst_promise_wait(promise) == GST_PROMISE_RESULT_REPLIED &&
                        (gst_promise_get_reply(promise) == nullptr ||
                         !gst_structure_has_field(gst_promise_get_reply(promise), "error"));
  gst_promise_unref(promise);
  if (!is_taken) return tell(peer, kRefused);
  g_signal_emit_by_name(
      peer, "create-answer", nullptr,
      gst_promise_new_with_change_func(on_answer, gst_object_ref(peer), unref_element));
}

void on_gathering(GstElement* peer, GParamSpec*, gpointer) {
  GstWebRTCICEGatheringState state = GST_WEBRTC_ICE_GATHERING_STATE_NEW;
  g_object_get(peer, "ice-gathering-state", &state, nullptr);
  if (state == GST_WEBRTC_ICE_GATHERING_STATE_COMPLETE) tell(peer, kGathered);
}

// Lets a viewer reach nothing but 127.0.0.1, by UDP.
void stay_on_this_machine(GstElement* peer) {
  GstObject* ice = nullptr;
  g_object_get(peer, "ice-agent", &ice, nullptr);
  const Handle<GstObject> ice_owner(ice);
  g_object_set(ice, "ice-tcp", FALSE, nullptr);
  gboolean is_added = FALSE;
  g_signal_emit_by_name(ice, "add-local-ip-address", "127.0.0.1", &is_added);
  if (!is_added) throw Error(ErrorCode::device_failed, "libnice does not take 127.0.0.1");
  // libnice asks routers to open ports, unless it is told not to.
  GObject* agent = nullptr;
  g_object_get(ice, "agent", &agent, nullptr);
  g_object_set(agent, "upnp", FALSE, nullptr);
  g_object_unref(agent);
}

Handle<GstElement> element_of(const Handle<GstElement>& pipeline, const char* name) {
  return Handle<GstElement>(gst_bin_get_by_name(GST_BIN(pipeline.get()), name));
}

}  // namespace

std::string Viewer::lacks() {
  for (const char* name :
       {"webrtcbin", "nicesrc", "nicesink", "dtlssrtpenc", "dtlssrtpdec", "srtpenc", "rtpbin",
        "appsrc", "jpegdec", "videoconvert", "vp8enc", "rtpvp8pay"}) {
    const Handle<GstObject> factory(GST_OBJECT(gst_element_factory_find(name)));
    if (factory == nullptr) return name;
  }
  return "";
}

Viewer::Viewer(Pictures pictures, const std::string& offer, Answered answered)
    : pictures_(std::move(pictures)) {
  Sdp sdp = read_offer(offer);
  const std::string payload = std::to_string(payload_of_vp8(sdp.get()));
  // The source keeps one picture, the newest, while the encoder is at work on another one.
  const std::string line =
      "appsrc name=source is-live=true do-timestamp=true format=time caps=image/jpeg "
      "leaky-type=downstream max-buffers=1 max-bytes=0 max-time=0 ! jpegdec ! videoconvert "
      "! vp8enc deadline=1 cpu-used=8 lag-in-frames=0 error-resilient=default "
      "target-bitrate=4000000 ! rtpvp8pay picture-id-mode=15-bit pt=" +
      payload +
      " ! application/x-rtp,media=video,encoding-name=VP8,clock-rate=90000,payload=" + payload +
      " ! webrtcbin name=peer bundle-policy=max-bundle";
  GError* error = nullptr;
  pipeline_.reset(gst_parse_launch(line.c_str(), &error));
  const Handle<GError> owner(error);
  if (error != nullptr) throw Error(ErrorCode::device_failed, error->message);
  gst_object_ref_sink(pipeline_.get());
  source_ = element_of(pipeline_, "source");
  peer_ = element_of(pipeline_, "peer");
  stay_on_this_machine(peer_.get());
  g_signal_connect(peer_.get(), "notify::ice-gathering-state", G_CALLBACK(on_gathering), nullptr);
  GstBus* bus = gst_element_get_bus(pipeline_.get());
  gst_bus_add_watch(bus, on_message, this);
  gst_object_unref(bus);
  gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
  answered_ = std::move(answered);
  const Description description(
      gst_webrtc_session_description_new(GST_WEBRTC_SDP_TYPE_OFFER, sdp.release()));
  g_signal_emit_by_name(
      peer_.get(), "set-remote-description", description.get(),
      gst_promise_new_with_change_func(on_offer, gst_object_ref(peer_.get()), unref_element));
}

Viewer::~Viewer() {
  guard([](const Failure&) {}, false, [&] { return answer("", "the viewer is gone"), true; });
  GstBus* bus = gst_element_get_bus(pipeline_.get());
  gst_bus_remove_watch(bus);
  gst_object_unref(bus);
  gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
}

gboolean Viewer::on_message(GstBus*, GstMessage* message, gpointer self) {
  auto* viewer = static_cast<Viewer*>(self);
  guard([&](const Failure&) { viewer->is_over_ = true; }, false,
        [&] { return viewer->take(message), true; });
  return G_SOURCE_CONTINUE;
}

void Viewer::take(GstMessage* message) {
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    is_over_ = true;
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    const Handle<GError> owner(error);
    return answer("", error->message);
  }
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_APPLICATION) return;
  if (gst_message_has_name(message, kRefused)) {
    is_over_ = true;
    return answer("", "the offer is not one that webrtcbin can answer");
  }
  listen();
  GstWebRTCSessionDescription* description = nullptr;
  g_object_get(peer_.get(), "local-description", &description, nullptr);
  const Description owner(description);
  if (description == nullptr) return;
  gchar* text = gst_sdp_message_as_text(description->sdp);
  const Handle<char> text_owner(text);
  answer(text, "");
}

void Viewer::answer(const std::string& text, const std::string& problem) {
  if (const Answered answered = std::exchange(answered_, nullptr)) answered(text, problem);
}

void Viewer::listen() {
  using Heard = std::shared_ptr<std::atomic<int64_t>>;
  for_each(gst_bin_iterate_recurse(GST_BIN(peer_.get())), [&](gpointer object) {
    GstElementFactory* factory = gst_element_get_factory(GST_ELEMENT(object));
    if (factory == nullptr || g_strcmp0(GST_OBJECT_NAME(factory), "nicesrc") != 0) return;
    const Handle<GstPad> pad(gst_element_get_static_pad(GST_ELEMENT(object), "src"));
    gst_pad_add_probe(
        pad.get(),
        static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST),
        [](GstPad*, GstPadProbeInfo*, gpointer heard) {
          **static_cast<Heard*>(heard) = g_get_monotonic_time();
          return GST_PAD_PROBE_OK;
        },
        new Heard(heard_us_), [](gpointer heard) { delete static_cast<Heard*>(heard); });
  });
}

bool Viewer::has_left() const {
  GstWebRTCPeerConnectionState state = GST_WEBRTC_PEER_CONNECTION_STATE_NEW;
  g_object_get(peer_.get(), "connection-state", &state, nullptr);
  const int64_t now = g_get_monotonic_time();
  switch (state) {
    case GST_WEBRTC_PEER_CONNECTION_STATE_NEW:
    case GST_WEBRTC_PEER_CONNECTION_STATE_CONNECTING:
      return now - begun_us_ > kConnectUs;
    case GST_WEBRTC_PEER_CONNECTION_STATE_CONNECTED:
      return now - *heard_us_ > kSilentUs;
    default:
      return true;
  }
}

void Viewer::send() {
  const int64_t now = g_get_monotonic_time();
  if (now - sent_us_ > kRepeatUs) seen_ = 0;
  const auto picture = pictures_(seen_);
  if (picture == nullptr) return;
  sent_us_ = now;
  using Picture = std::shared_ptr<const std::string>;
  GstBuffer* buffer =
      gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, const_cast<char*>(picture->data()),
                                  picture->size(), 0, picture->size(), new Picture(picture),
                                  [](gpointer owner) { delete static_cast<Picture*>(owner); });
  GstFlowReturn flow = GST_FLOW_OK;
  g_signal_emit_by_name(source_.get(), "push-buffer", buffer, &flow);
  gst_buffer_unref(buffer);
  if (flow != GST_FLOW_OK) is_over_ = true;
}

}  // namespace clinfer
