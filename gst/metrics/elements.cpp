// Walks the elements of a pipeline and reads fields of their statistics.
#include "gst/metrics/elements.h"

#include <vector>

#include "gst/base/handle.h"

namespace clinfer {
namespace {

// Returns a sink pad of an element; null if it has none.
GstPad* first_sink_pad(GstElement* element) {
  GstPad* pad = nullptr;
  const GstElement* const locked = element;
  GST_OBJECT_LOCK(locked);
  if (element->sinkpads != nullptr) pad = GST_PAD(gst_object_ref(element->sinkpads->data));
  GST_OBJECT_UNLOCK(locked);
  return pad;
}

}  // namespace

bool number_of(const GstStructure* structure, const char* field, double& number) {
  const GValue* value = gst_structure_get_value(structure, field);
  if (value == nullptr) return false;
  GValue converted = G_VALUE_INIT;
  g_value_init(&converted, G_TYPE_DOUBLE);
  const bool done = g_value_transform(value, &converted);
  if (done) number = g_value_get_double(&converted);
  g_value_unset(&converted);
  return done;
}

std::string string_of(const GstStructure* structure, const char* field) {
  const char* text = gst_structure_get_string(structure, field);
  return text != nullptr ? text : "";
}

std::string name_of(gpointer object) {
  gchar* name = gst_object_get_name(GST_OBJECT(object));
  std::string text = name != nullptr ? name : "";
  g_free(name);
  return text;
}

void for_each(GstIterator* iterator, const std::function<void(gpointer)>& visit) {
  std::vector<Handle<GstElement>> seen;
  GValue value = G_VALUE_INIT;
  for (bool goes_on = true; goes_on;) switch (gst_iterator_next(iterator, &value)) {
      case GST_ITERATOR_OK:
        seen.emplace_back(GST_ELEMENT(g_value_dup_object(&value)));
        g_value_reset(&value);
        break;
      case GST_ITERATOR_RESYNC:
        seen.clear();
        gst_iterator_resync(iterator);
        break;
      default:
        goes_on = false;
    }
  g_value_unset(&value);
  gst_iterator_free(iterator);
  for (const Handle<GstElement>& element : seen) visit(element.get());
}

std::string camera_of(GstElement* element) {
  // Limits the walk, for pads that are being relinked; otherwise pads form no cycles.
  constexpr int kMost = 1000;
  Handle<GstElement> at(GST_ELEMENT(gst_object_ref(element)));
  for (int i = 0; i < kMost; ++i) {
    const Handle<GstPad> sink(first_sink_pad(at.get()));
    if (sink == nullptr) return i == 0 ? "" : name_of(at.get());
    const Handle<GstPad> peer(gst_pad_get_peer(sink.get()));
    if (peer == nullptr) return "";
    Handle<GstObject> parent(gst_pad_get_parent(peer.get()));
    // Leaves the bin, because the peer of the first pad in a bin is inside the bin's own pad.
    while (parent != nullptr && GST_IS_PAD(parent.get())) {
      const Handle<GstPad> outside(gst_pad_get_peer(GST_PAD(parent.get())));
      parent = Handle<GstObject>(outside != nullptr ? gst_pad_get_parent(outside.get()) : nullptr);
    }
    if (parent == nullptr || !GST_IS_ELEMENT(parent.get())) return "";
    at = Handle<GstElement>(GST_ELEMENT(parent.release()));
  }
  return "";
}

}  // namespace clinfer
