// Implements the tracer: the elements tell it what they measure anyway.
#include "gst/infer/stream/latency_tracer.h"

#include <gst/gsttracer.h>
#include <gst/gsttracerrecord.h>

#include <atomic>

namespace {

std::atomic<int> running{0};
GstTracerRecord* record = nullptr;  // made with the class, and kept

struct LatencyTracer {
  GstTracer parent;
};
struct LatencyTracerClass {
  GstTracerClass parent;
};

}  // namespace

G_DEFINE_TYPE(LatencyTracer, clinfer_latency_tracer, GST_TYPE_TRACER)

static void clinfer_latency_tracer_finalize(GObject* object) {
  --running;
  G_OBJECT_CLASS(clinfer_latency_tracer_parent_class)->finalize(object);
}

// Describes a field of the record, as readers of such logs expect it.
static GstStructure* field(GType type, const char* description) {
  return gst_structure_new("value", "type", G_TYPE_GTYPE, type, "description", G_TYPE_STRING,
                           description, nullptr);
}

static void clinfer_latency_tracer_class_init(LatencyTracerClass* klass) {
  G_OBJECT_CLASS(klass)->finalize = clinfer_latency_tracer_finalize;
  GstStructure* const element =
      gst_structure_new("scope", "type", G_TYPE_GTYPE, G_TYPE_STRING, "related-to",
                        GST_TYPE_TRACER_VALUE_SCOPE, GST_TRACER_VALUE_SCOPE_ELEMENT, nullptr);
  const GType s = GST_TYPE_STRUCTURE;
  record = gst_tracer_record_new(
      "clinfer-inference.class",                                                 //
      "element", s, element,                                                     //
      "pts", s, field(G_TYPE_UINT64, "presentation time of the frame"),          //
      "outcome", s, field(G_TYPE_STRING, "run, skipped, late or held"),          //
      "model", s, field(G_TYPE_STRING, "name of the network"),                   //
      "inferences", s, field(G_TYPE_UINT, "parts of the frame that it got"),     //
      "queue", s, field(G_TYPE_UINT64, "ns of waiting for a request"),           //
      "infer", s, field(G_TYPE_UINT64, "ns in the device"),                      //
      "decode", s, field(G_TYPE_UINT64, "ns of reading and attaching results"),  //
      "latency", s, field(G_TYPE_UINT64, "ns from pad to pad"), nullptr);
  GST_OBJECT_FLAG_SET(record, GST_OBJECT_FLAG_MAY_BE_LEAKED);
}

static void on_new_element(GObject*, GstClockTime, GstElement*) {}

static void clinfer_latency_tracer_init(LatencyTracer* self) {
  ++running;
  // GStreamer keeps only tracers that have a hook.
  gst_tracing_register_hook(&self->parent, "element-new", G_CALLBACK(on_new_element));
}

namespace clinfer {

gboolean register_latency_tracer(GstPlugin* plugin) {
  return gst_tracer_register(plugin, "clinferlatency", clinfer_latency_tracer_get_type());
}

bool traces_frames() { return running.load(std::memory_order_relaxed) > 0; }

void trace_frame(GstElement* element, const FrameTrace& trace) {
  gchar* const name = gst_object_get_name(GST_OBJECT(element));
  gst_tracer_record_log(record, name, static_cast<guint64>(trace.pts),
                        std::string(trace.outcome).c_str(), trace.model.c_str(), trace.inferences,
                        static_cast<guint64>(trace.queue), static_cast<guint64>(trace.infer),
                        static_cast<guint64>(trace.decode), static_cast<guint64>(trace.latency));
  g_free(name);
}

}  // namespace clinfer
