// Implements clwatch, a sink for JPEG pictures with clinfer's results, which it shows on a page.
#include "gst/metrics/watch.h"

#include <gst/base/gstbasesink.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gst/base/element_class.h"
#include "gst/meta/meta.h"
#include "gst/metrics/elements.h"
#include "gst/metrics/shared_port.h"
#include "gst/metrics/watch_site.h"

namespace {

using clinfer::WatchedCamera;
using clinfer::WatchSite;

struct WatchSettings {
  unsigned port = 8080;
  std::string source;
  bool webrtc = true;
};

struct WatchState {
  // Members that the object lock guards:
  WatchSettings settings;
  clinfer::LostProperties lost;
  std::optional<WatchSettings> in_force;
  // From start to stop:
  std::shared_ptr<WatchSite> site;
  std::shared_ptr<WatchedCamera> camera;
  int width = 0, height = 0;  // of the streaming thread
};

}  // namespace

using GstClwatch = clinfer::Instance<GstBaseSink, WatchState>;
using GstClwatchClass = GstBaseSinkClass;

G_DEFINE_TYPE(GstClwatch, gst_clwatch, GST_TYPE_BASE_SINK)

namespace {

const std::vector<clinfer::Property<WatchSettings>>& properties() {
  using S = WatchSettings;
  static const auto& rows = *new std::vector<clinfer::Property<S>>{
      clinfer::number<&S::port>(
          "port", "Port",
          "TCP port on 127.0.0.1 that serves the page. Elements of one process with the same port "
          "share it",
          1, 65535),
      clinfer::text<&S::source>("source", "Source",
                                "The camera's name on the page (unset: the name of the element "
                                "from which its frames come)"),
      clinfer::flag<&S::webrtc>("webrtc", "WebRTC",
                                "Offers the page pictures by WebRTC where GStreamer has what that "
                                "needs (false: by MJPEG alone)")};
  return rows;
}

using Class = clinfer::ElementClass<GstClwatch, properties>;

gboolean start(GstBaseSink* sink) {
  return clinfer::guard(GST_ELEMENT(sink), FALSE, [&]() -> gboolean {
    WatchState& state = Class::state(sink);
    const WatchSettings settings = Class::settings(sink);
    auto site = clinfer::shared_at<WatchSite>(settings.port);
    const std::string name =
        settings.source.empty() ? clinfer::camera_of(GST_ELEMENT(sink)) : settings.source;
    const std::string lacks = clinfer::Viewer::lacks();
    const std::string only_mjpeg = !settings.webrtc ? "webrtc=false"
                                   : !lacks.empty() ? "GStreamer has no element " + lacks
                                                    : "";
    state.camera = std::make_shared<WatchedCamera>(GST_ELEMENT(sink), name, only_mjpeg);
    site->add(state.camera);
    state.site = std::move(site);
    const clinfer::ObjectLock lock(sink);
    state.in_force = settings;
    return TRUE;
  });
}

gboolean stop(GstBaseSink* sink) {
  WatchState* const state = Class::find_state(sink);
  if (state == nullptr) return TRUE;
  if (state->site != nullptr) state->site->remove(state->camera);
  state->site.reset();
  state->camera.reset();
  const clinfer::ObjectLock lock(sink);
  state->in_force.reset();
  return TRUE;
}

gboolean set_caps(GstBaseSink* sink, GstCaps* caps) {
  return clinfer::guard(GST_ELEMENT(sink), FALSE, [&]() -> gboolean {
    WatchState& state = Class::state(sink);
    const GstStructure* structure = gst_caps_get_structure(caps, 0);
    return gst_structure_get_int(structure, "width", &state.width) &&
           gst_structure_get_int(structure, "height", &state.height);
  });
}

GstFlowReturn render(GstBaseSink* sink, GstBuffer* buffer) {
  return clinfer::guard(GST_ELEMENT(sink), GST_FLOW_ERROR, [&] {
    WatchState& state = Class::state(sink);
    std::string jpeg(gst_buffer_get_size(buffer), '\0');
    jpeg.resize(gst_buffer_extract(buffer, 0, jpeg.data(), jpeg.size()));
    state.camera->add_frame(std::move(jpeg), state.width, state.height,
                            clinfer::read_frame(buffer, state.width, state.height));
    state.site->wake();
    return GST_FLOW_OK;
  });
}

gboolean sink_event(GstBaseSink* sink, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS)
    clinfer::guard(GST_ELEMENT(sink), [&] { Class::state(sink).camera->end(); });
  return GST_BASE_SINK_CLASS(gst_clwatch_parent_class)->event(sink, event);
}

}  // namespace

static void gst_clwatch_class_init(GstClwatchClass* klass) {
  Class::set_up(klass, {"Watch page", "Sink/Video",
                        "Shows pictures, counts, events and times of cameras on a page, by HTTP on "
                        "this machine",
                        CLINFER_DOCS "operating.md", "image/jpeg", nullptr});
  auto* sink = GST_BASE_SINK_CLASS(klass);
  sink->start = start;
  sink->stop = stop;
  sink->set_caps = set_caps;
  sink->render = render;
  sink->event = sink_event;
}

static void gst_clwatch_init(GstClwatch* self) { Class::make_state(self); }

static gboolean register_clwatch(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clwatch", gst_clwatch_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clwatch, register_clwatch)
