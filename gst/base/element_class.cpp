// Sets metadata and pads of an element's class.
#include "gst/base/element_class.h"

namespace clinfer {
namespace {

void add_pad_template(GstElementClass* element, const char* name, GstPadDirection direction,
                      const char* caps_text) {
  if (caps_text == nullptr) return;
  const Handle<GstCaps> caps(gst_caps_from_string(caps_text));
  gst_element_class_add_pad_template(
      element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps.get()));
}

}  // namespace

void describe_element(GstElementClass* element, const ElementDescription& description) {
  gst_element_class_set_static_metadata(element, description.long_name, description.category,
                                        description.text, "clinfer developers");
  gst_element_class_add_static_metadata(element, GST_ELEMENT_METADATA_DOC_URI, description.page);
  add_pad_template(element, "sink", GST_PAD_SINK, description.sink_caps);
  add_pad_template(element, "src", GST_PAD_SRC, description.src_caps);
}

GstPad* new_pad(GstElement* element, const char* name) {
  return gst_pad_new_from_template(gst_element_get_pad_template(element, name), name);
}

void install_stats(GObjectClass* object, const char* blurb) {
  g_object_class_install_property(
      object, kStatsId,
      g_param_spec_boxed("stats", "Statistics", blurb, GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

}  // namespace clinfer
