// Implements the GObject type of clinfer: pads and state changes.

/**
 * SECTION:element-clinfer
 * @title: clinfer
 *
 * Runs an ONNX or OpenVINO IR model on each frame and attaches what it finds: a
 * GstVideoRegionOfInterestMeta an object, whose parameter `detection` holds the box, confidence and
 * label, and a custom meta `ClinferResult` that says whether the network ran.
 *
 * |[
 * gst-launch-1.0 filesrc location=in.mp4 ! decodebin ! clinfer model=face.xml
 * labels=background,face ! cloverlay ! videoconvert ! autovideosink
 * ]|
 */
#include "gst/infer/clinfer.h"

#include <optional>

#include "gst/base/element_class.h"
#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/log.h"
#include "gst/frames/mapped_frame.h"
#include "gst/frames/va_surface.h"
#include "gst/infer/settings/properties.h"
#include "gst/infer/stream/element_model.h"
#include "gst/meta/meta.h"

#define GST_CAT_DEFAULT clinfer_debug

G_DEFINE_TYPE(GstClinfer, gst_clinfer, GST_TYPE_ELEMENT)

namespace {

using clinfer::Element;
using clinfer::guard;
using clinfer::Handle;

constexpr const char* kCaps = CLINFER_SURFACE_CAPS CLINFER_CUDA_CAPS CLINFER_MAPPED_CAPS;

Element& element_of(gpointer object) { return clinfer::state_of(GST_CLINFER(object)->element); }

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  Handle<GstBuffer> owned(buffer);
  Element* const element = GST_CLINFER(parent)->element;
  if (element == nullptr) return GST_FLOW_ERROR;  // it has always been in state NULL
  const std::optional<GstFlowReturn> flow =
      guard([&](const clinfer::Failure& failure) { element->fail(failure); },
            std::optional<GstFlowReturn>(),
            [&] { return std::optional(element->chain(std::move(owned))); });
  return flow ? *flow : element->failed_flow();
}

GstFlowReturn sink_event(GstPad*, GstObject* parent, GstEvent* event) {
  const GstFlowReturn failed =
      GST_EVENT_TYPE(event) == GST_EVENT_CAPS ? GST_FLOW_NOT_NEGOTIATED : GST_FLOW_ERROR;
  Handle<GstEvent> owned(event);
  return guard(GST_ELEMENT(parent), failed,
               [&] { return element_of(parent).sink_event(std::move(owned)); });
}

gboolean sink_query(GstPad*, GstObject* parent, GstQuery* query) {
  return guard(GST_ELEMENT(parent), false, [&] { return element_of(parent).sink_query(query); });
}

gboolean src_event(GstPad*, GstObject* parent, GstEvent* event) {
  Handle<GstEvent> owned(event);
  return guard(GST_ELEMENT(parent), false,
               [&] { return element_of(parent).src_event(std::move(owned)); });
}

gboolean src_query(GstPad*, GstObject* parent, GstQuery* query) {
  return guard(GST_ELEMENT(parent), false, [&] { return element_of(parent).src_query(query); });
}

gboolean activate(GstPad* pad, GstObject* parent, GstPadMode mode, gboolean active) {
  if (mode != GST_PAD_MODE_PUSH) return FALSE;
  return guard(GST_ELEMENT(parent), false, [&] {
    element_of(parent).activate(GST_PAD_IS_SINK(pad), active);
    return true;
  });
}

GstStateChangeReturn change_state(GstElement* object, GstStateChange transition) {
  const auto ok = [&](void (Element::*step)()) {
    return guard(object, false, [&] { return (element_of(object).*step)(), true; });
  };
  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !ok(&Element::open))
    return GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !ok(&Element::prepare))
    return GST_STATE_CHANGE_FAILURE;
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS(gst_clinfer_parent_class)->change_state(object, transition);
  const bool failed = result == GST_STATE_CHANGE_FAILURE;
  if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING && !failed)
    guard(object, [&] { element_of(object).play(true); });
  if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED)
    guard(object, [&] { element_of(object).play(false); });
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED && failed))
    ok(&Element::finish);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL ||
      (transition == GST_STATE_CHANGE_NULL_TO_READY && failed))
    ok(&Element::close);
  return result;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  guard(GST_ELEMENT(object), [&] { element_of(object).set_property(id, value); });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  guard(GST_ELEMENT(object), [&] {
    const Element& element = element_of(object);
    const clinfer::ElementProperty& property =
        clinfer::property_of(clinfer::element_properties(), id);
    if (property.get != nullptr)
      property.get(*element.settings(), value);
    else
      property.read(element, *element.settings(), value);
  });
}

void finalize(GObject* object) {
  delete GST_CLINFER(object)->element;
  G_OBJECT_CLASS(gst_clinfer_parent_class)->finalize(object);
}

}  // namespace

static void gst_clinfer_class_init(GstClinferClass* klass) {
  clinfer::register_result_meta();
  auto* object = G_OBJECT_CLASS(klass);
  object->finalize = finalize;
  object->set_property = set_property;
  object->get_property = get_property;
  clinfer::install_properties(object, clinfer::element_properties());
  /**
   * GstClinfer::load-model:
   * @element: the element
   * @path: the property model, or an IR's path with .bin at its end
   *
   * Asks for the bytes of the model, and where they are an OpenVINO IR, then for those of its weights:
   * an application may decrypt them. It comes once for each model, in the thread that changes the state or
   * sets model, and not where model-data is set.
   *
   * Returns: (transfer full) (nullable): the bytes; NULL to read the file.
   */
  g_signal_new(clinfer::kLoadModel, G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0,
               g_signal_accumulator_first_wins, nullptr, nullptr, G_TYPE_BYTES, 1, G_TYPE_STRING);
  auto* element = GST_ELEMENT_CLASS(klass);
  element->change_state = change_state;
  clinfer::describe_element(
      element,
      {"Neural network inference", "Filter/Analyzer/Video/Hardware",
       "Runs an ONNX or OpenVINO IR model on video frames by OpenCL and attaches what it finds",
       CLINFER_DOCS "properties.md", kCaps, kCaps});
}

static void gst_clinfer_init(GstClinfer* self) {
  GstPad* sink = clinfer::new_pad(GST_ELEMENT(self), "sink");
  GstPad* src = clinfer::new_pad(GST_ELEMENT(self), "src");
  gst_pad_set_chain_function(sink, chain);
  gst_pad_set_event_full_function(sink, sink_event);
  gst_pad_set_query_function(sink, sink_query);
  gst_pad_set_activatemode_function(sink, activate);
  gst_pad_set_event_function(src, src_event);
  gst_pad_set_query_function(src, src_query);
  gst_pad_set_activatemode_function(src, activate);
  GST_PAD_SET_PROXY_CAPS(sink);
  GST_PAD_SET_PROXY_CAPS(src);
  gst_element_add_pad(GST_ELEMENT(self), sink);
  gst_element_add_pad(GST_ELEMENT(self), src);
  self->element = clinfer::make_state<Element>(GST_ELEMENT(self), sink, src);
}

static gboolean register_clinfer(GstPlugin* plugin) {
  return clinfer::register_element(plugin, "clinfer", gst_clinfer_get_type(),
                                   clinfer::element_properties);
}
GST_ELEMENT_REGISTER_DEFINE_CUSTOM(clinfer, register_clinfer)
