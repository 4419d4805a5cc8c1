// Registers enumerations, and warns of changes that have to wait while a pipeline runs.
#include "gst/base/properties.h"

#include <algorithm>

namespace clinfer {

GType enum_type(const char* type_name, std::span<const GEnumValue> values) {
  if (const GType known = g_type_from_name(type_name); known != 0) return known;
  // Never freed, because GLib keeps the array as long as the type.
  GEnumValue* kept = g_new0(GEnumValue, values.size() + 1);
  std::copy(values.begin(), values.end(), kept);
  const GType type = g_enum_register_static(type_name, kept);
  gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
  return type;
}

void sync_controllers(GstElement* element, const GstSegment& segment, GstBuffer* buffer) {
  if (segment.format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer)) return;
  const GstClockTime time =
      gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(element), time);
}

void warn_of_fixed_property(GstElement* element, const GParamSpec* spec, const GValue* in_force,
                            const char* until) {
  const bool is_unset = G_VALUE_HOLDS_STRING(in_force) && g_value_get_string(in_force) == nullptr;
  gchar* text = is_unset ? g_strdup("unset") : gst_value_serialize(in_force);
  GST_ELEMENT_WARNING(element, RESOURCE, SETTINGS,
                      ("%s cannot change now; in force %s: %s", spec->name, until, text),
                      (nullptr));
  g_free(text);
}

}  // namespace clinfer
