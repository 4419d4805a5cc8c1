// Enumerations of properties.
#include "gst/base/properties.h"

#include <algorithm>

namespace clinfer {

GType enum_type(const char* type_name, std::span<const GEnumValue> values) {
  if (const GType known = g_type_from_name(type_name); known != 0) return known;
  // GLib keeps the array as long as the type, which is for ever.
  GEnumValue* kept = g_new0(GEnumValue, values.size() + 1);
  std::copy(values.begin(), values.end(), kept);
  const GType type = g_enum_register_static(type_name, kept);
  gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
  return type;
}

}  // namespace clinfer
