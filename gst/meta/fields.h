// Names of fields of GstStructures: "x_min"_f. GStreamer before 1.26 finds a field by the quark of
// its name, and looking up the quark takes longer than everything else that is done with a field,
// so each place that uses a name looks it up once.
#pragma once

#include <gst/gst.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace clinfer {

template <size_t kSize>
struct FieldText {
  char text[kSize]{};
  consteval FieldText(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
};

#if GST_CHECK_VERSION(1, 26, 0)
using Field = const char*;

template <FieldText kText>
Field operator""_f() {
  return kText.text;
}

inline const GValue* value_of(const GstStructure* structure, Field field) {
  return gst_structure_get_value(structure, field);
}
// Sets the field and takes over the value's contents.
inline void take_value(GstStructure* structure, Field field, GValue* value) {
  gst_structure_take_value(structure, field, value);
}
#else
enum class Field : GQuark {};

template <FieldText kText>
Field operator""_f() {
  static const Field field{g_quark_from_static_string(kText.text)};
  return field;
}

inline const GValue* value_of(const GstStructure* structure, Field field) {
  return gst_structure_id_get_value(structure, static_cast<GQuark>(field));
}
// Sets the field and takes over the value's contents.
inline void take_value(GstStructure* structure, Field field, GValue* value) {
  gst_structure_id_take_value(structure, static_cast<GQuark>(field), value);
}
#endif

// ---- values by type -----------------------------------------------------------------------------

template <typename Set, typename Value>
void set_value(GstStructure* structure, Field field, GType type, Set set, Value value) {
  GValue contents = G_VALUE_INIT;
  g_value_init(&contents, type);
  set(&contents, value);
  take_value(structure, field, &contents);
}
inline void set(GstStructure* s, Field field, const char* text) {
  set_value(s, field, G_TYPE_STRING, g_value_set_string, text);
}
inline void set(GstStructure* s, Field field, const std::string& text) {
  set(s, field, text.c_str());
}
inline void set(GstStructure* s, Field field, int value) {
  set_value(s, field, G_TYPE_INT, g_value_set_int, value);
}
inline void set(GstStructure* s, Field field, double value) {
  set_value(s, field, G_TYPE_DOUBLE, g_value_set_double, value);
}
inline void set(GstStructure* s, Field field, float value) {
  set(s, field, static_cast<double>(value));
}
inline void set(GstStructure* s, Field field, guint64 value) {
  set_value(s, field, G_TYPE_UINT64, g_value_set_uint64, value);
}
inline void set(GstStructure* s, Field field, bool value) {
  set_value(s, field, G_TYPE_BOOLEAN, g_value_set_boolean, value);
}

// Returns the value of a field of exactly this type, or `otherwise`.
inline int integer(const GstStructure* s, Field field, int otherwise = 0) {
  const GValue* value = value_of(s, field);
  return value != nullptr && G_VALUE_HOLDS_INT(value) ? g_value_get_int(value) : otherwise;
}
inline double number(const GstStructure* s, Field field, double otherwise = 0) {
  const GValue* value = value_of(s, field);
  return value != nullptr && G_VALUE_HOLDS_DOUBLE(value) ? g_value_get_double(value) : otherwise;
}
inline guint64 count(const GstStructure* s, Field field) {
  const GValue* value = value_of(s, field);
  return value != nullptr && G_VALUE_HOLDS_UINT64(value) ? g_value_get_uint64(value) : 0;
}
inline bool is_set(const GstStructure* s, Field field) {
  const GValue* value = value_of(s, field);
  return value != nullptr && G_VALUE_HOLDS_BOOLEAN(value) && g_value_get_boolean(value);
}
inline bool has(const GstStructure* s, Field field, GType type) {
  const GValue* value = value_of(s, field);
  return value != nullptr && G_VALUE_HOLDS(value, type);
}

}  // namespace clinfer
