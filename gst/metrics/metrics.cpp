// Implements clmetrics, an element without pads. In a pipeline, it serves the statistics of all
// elements there by HTTP.
#include "gst/metrics/metrics.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gst/base/element_class.h"
#include "gst/meta/record.h"
#include "gst/metrics/exposition.h"
#include "gst/metrics/server.h"
#include "gst/metrics/shared_port.h"
#include "gst/metrics/watch.h"

namespace {

using clinfer::Handle;
using clinfer::LocalServer;

// Serves all pipelines in the process that have a clmetrics with the same port.
class Endpoint {
 public:
  explicit Endpoint(unsigned port)
      : server_(port, {.get = [this](const std::string& path) { return answer(path); }}) {}

  void add(GstElement* element) {
    const std::lock_guard lock(mutex_);
    elements_.push_back(element);
  }
  void remove(GstElement* element) {
    const std::lock_guard lock(mutex_);
    std::erase(elements_, element);
  }

 private:
  // Returns the pipelines of the elements, each once.
  std::vector<Handle<GstElement>> pipelines() {
    std::vector<Handle<GstElement>> found;
    const std::lock_guard lock(mutex_);
    for (GstElement* element : elements_) {
      Handle<GstObject> top(GST_OBJECT(gst_object_ref(element)));
      while (GstObject* parent = gst_object_get_parent(top.get())) top.reset(parent);
      if (std::none_of(found.begin(), found.end(), [&](const Handle<GstElement>& known) {
            return GST_OBJECT(known.get()) == top.get();
          }))
        found.emplace_back(GST_ELEMENT(top.release()));
    }
    return found;
  }

  LocalServer::Reply answer(const std::string& path) {
    if (path != "/metrics")
      return {404, "text/plain; charset=utf-8", "The statistics are at /metrics.\n", nullptr};
    clinfer::Exposition exposition;
    for (const Handle<GstElement>& pipeline : pipelines()) exposition.add_pipeline(pipeline.get());
    exposition.add_process();
    return {200, "text/plain; version=0.0.4; charset=utf-8", exposition.text(), nullptr};
  }

  std::mutex mutex_;
  std::vector<GstElement*> elements_;  // elements that live; they are removed before they end
  LocalServer server_;                 // made last and destroyed first
};

struct MetricsSettings {
  unsigned port = 9464;
};

struct MetricsState {
  // Members that the object lock guards:
  MetricsSettings settings;
  clinfer::LostProperties lost;
  std::optional<MetricsSettings> in_force;
  // Set by state changes.
  std::shared_ptr<Endpoint> endpoint;
};

}  // namespace

using GstClmetrics = clinfer::Instance<GstElement, MetricsState>;
using GstClmetricsClass = GstElementClass;

G_DEFINE_TYPE(GstClmetrics, gst_clmetrics, GST_TYPE_ELEMENT)

namespace {

const std::vector<clinfer::Property<MetricsSettings>>& properties() {
  static const auto& rows =
      *new std::vector<clinfer::Property<MetricsSettings>>{clinfer::number<&MetricsSettings::port>(
          "port", "Port",
          "TCP port on 127.0.0.1 that answers GET /metrics. Elements of one process with the same "
          "port answer together, each for its pipeline",
          1, 65535)};
  return rows;
}

using Class = clinfer::ElementClass<GstClmetrics, properties>;

void open(GstElement* element) {
  MetricsState& state = Class::state(element);
  const MetricsSettings settings = Class::settings(element);
  state.endpoint = clinfer::shared_at<Endpoint>(settings.port);
  state.endpoint->add(element);
  const clinfer::ObjectLock lock(element);
  state.in_force = settings;
}

void close(GstElement* element) {
  MetricsState& state = Class::state(element);
  if (state.endpoint != nullptr) state.endpoint->remove(element);
  state.endpoint.reset();
  const clinfer::ObjectLock lock(element);
  state.in_force.reset();
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  const auto done = [&](auto change) {
    return clinfer::guard(element, false, [&] { return change(element), true; });
  };
  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !done(open)) return GST_STATE_CHANGE_FAILURE;
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS(gst_clmetrics_parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL) done(close);
  return result;
}

}  // namespace

static void gst_clmetrics_class_init(GstClmetricsClass* klass) {
  Class::set_up(klass, {"Metrics", "Generic",
                        "Serves the statistics of its pipeline's elements to Prometheus, by HTTP "
                        "on this machine",
                        CLINFER_DOCS "operating.md", nullptr, nullptr});
  GST_ELEMENT_CLASS(klass)->change_state = change_state;
}

static void gst_clmetrics_init(GstClmetrics* self) { Class::make_state(self); }

static gboolean register_clmetrics(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clmetrics", gst_clmetrics_get_type(), properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clmetrics, register_clmetrics)

static gboolean plugin_init(GstPlugin* plugin) {
  clinfer::register_result_meta();
  return GST_ELEMENT_REGISTER(clmetrics, plugin) && GST_ELEMENT_REGISTER(clwatch, plugin);
}

#define PACKAGE "clinfer"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, clmetrics,
                  "Statistics of pipelines for Prometheus, and a page to watch them", plugin_init,
                  CLINFER_VERSION, "MIT", "clinfer", CLINFER_DOCS)
