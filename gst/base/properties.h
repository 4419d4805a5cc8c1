// GObject properties whose values are the members of a plain struct: one row a property.
//
// A row names the member once. Type and default follow from the member (the default is what the
// struct starts with), so that the table is all that adding a property takes:
//
//   const std::vector<Property<Style>>& properties() {
//     static const auto& rows = *new std::vector<Property<Style>>{
//         number<&Style::line_width>("line-width", "Line width", "Width in pixels (0: automatic)",
//         0, 1000),
//     };
//     return rows;
//   }
//
// The table is never destroyed: streaming threads may read it while the process ends.
// install_properties(), set_property() and get_property() do the rest; the caller holds the lock
// that guards the struct.
#pragma once

#include <gst/gst.h>

#include <bitset>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"

namespace clinfer {

// Flags that tell when a change takes effect. Values of kReady take effect at the next change from
// READY to PAUSED.
inline constexpr auto kReady =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
inline constexpr auto kPlaying = static_cast<GParamFlags>(
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
// Flags for numbers and switches that a GstControlBinding may drive; otherwise as kPlaying.
inline constexpr auto kControllable = static_cast<GParamFlags>(kPlaying | GST_PARAM_CONTROLLABLE);

// A property that is a member; the type tells which. Its Property may be of the member's struct or
// of a derived one.
template <auto Member>
struct MemberRow;
template <typename V, typename T, T V::*Member>
struct MemberRow<Member> {
  using Values = V;
  using Type = T;
  GParamSpec* spec = nullptr;
};

template <typename Values>
struct Property {
  Property() = default;
  template <auto Member>
  Property(const MemberRow<Member>& row);

  GParamSpec* spec = nullptr;
  void (*set)(Values&, const GValue*) = nullptr;  // null: the property is read-only
  // Null: the element knows the value, and Values does not.
  void (*get)(const Values&, GValue*) = nullptr;
  bool (*equal)(const Values&, const Values&) = nullptr;  // null if `set` is null
};

// ---- between a GValue and a member --------------------------------------------------------------

inline void read_value(const GValue* value, std::string& to) {
  const char* text = g_value_get_string(value);
  to = text != nullptr ? text : "";
}
inline void read_value(const GValue* value, std::optional<std::string>& to) {
  to.reset();
  if (const char* text = g_value_get_string(value)) to = text;
}
inline void read_value(const GValue* value, std::optional<double>& to) {
  to = g_value_get_double(value);
}
inline void read_value(const GValue* value, double& to) { to = g_value_get_double(value); }
inline void read_value(const GValue* value, unsigned& to) { to = g_value_get_uint(value); }
inline void read_value(const GValue* value, int& to) { to = g_value_get_int(value); }
inline void read_value(const GValue* value, bool& to) { to = g_value_get_boolean(value); }
template <typename Enum>
requires std::is_enum_v<Enum>
void read_value(const GValue* value, Enum& to) { to = static_cast<Enum>(g_value_get_enum(value)); }
template <typename Enum>
requires std::is_enum_v<Enum>
void read_value(const GValue* value, std::optional<Enum>& to) {
  to = static_cast<Enum>(g_value_get_enum(value));
}

// The enumeration of a member. An optional that is unset reads as the value 0.
template <typename T>
struct EnumOf {
  using Type = T;
};
template <typename T>
struct EnumOf<std::optional<T>> {
  using Type = T;
};

// Writes a value; an empty text reads as NULL.
template <typename T>
void write_value(const T& from, GValue* value) {
  if constexpr (std::is_same_v<T, std::string>)
    g_value_set_string(value, from.empty() ? nullptr : from.c_str());
  else if constexpr (std::is_same_v<T, std::optional<std::string>>)
    g_value_set_string(value, from ? from->c_str() : nullptr);
  else if constexpr (std::is_same_v<T, double>)
    g_value_set_double(value, from);
  else if constexpr (std::is_same_v<T, unsigned>)
    g_value_set_uint(value, from);
  else if constexpr (std::is_same_v<T, int>)
    g_value_set_int(value, from);
  else if constexpr (std::is_same_v<T, bool>)
    g_value_set_boolean(value, from);
  else if constexpr (std::is_enum_v<T>)
    g_value_set_enum(value, static_cast<int>(from));
  else
    g_value_set_enum(value, from ? static_cast<int>(*from) : 0);
}

// ---- rows ---------------------------------------------------------------------------------------

template <typename Values>
template <auto Member>
Property<Values>::Property(const MemberRow<Member>& row) : spec(row.spec) {
  set = [](Values& values, const GValue* value) { read_value(value, values.*Member); };
  equal = [](const Values& a, const Values& b) { return a.*Member == b.*Member; };
  if constexpr (!std::is_same_v<typename MemberRow<Member>::Type, std::optional<double>>)
    get = [](const Values& values, GValue* value) { write_value(values.*Member, value); };
}

// A row for a member that needs a GParamSpec of its own.
template <auto Member>
MemberRow<Member> row(GParamSpec* spec) {
  MemberRow<Member> made;
  made.spec = spec;
  return made;
}

template <auto Member>
auto default_of() {
  return typename MemberRow<Member>::Values{}.*Member;
}

template <auto Member>
MemberRow<Member> text(const char* name, const char* nick, const char* blurb,
                       GParamFlags flags = kReady) {
  std::optional<std::string> otherwise = default_of<Member>();
  return row<Member>(g_param_spec_string(
      name, nick, blurb, otherwise && !otherwise->empty() ? otherwise->c_str() : nullptr, flags));
}

// Makes a row for an unsigned, int or double member.
template <auto Member>
MemberRow<Member> number(const char* name, const char* nick, const char* blurb,
                         typename MemberRow<Member>::Type least,
                         typename MemberRow<Member>::Type most, GParamFlags flags = kReady) {
  using Type = typename MemberRow<Member>::Type;
  const Type otherwise = default_of<Member>();
  if constexpr (std::is_same_v<Type, unsigned>)
    return row<Member>(g_param_spec_uint(name, nick, blurb, least, most, otherwise, flags));
  else if constexpr (std::is_same_v<Type, int>)
    return row<Member>(g_param_spec_int(name, nick, blurb, least, most, otherwise, flags));
  else
    return row<Member>(g_param_spec_double(name, nick, blurb, least, most, otherwise, flags));
}

template <auto Member>
MemberRow<Member> flag(const char* name, const char* nick, const char* blurb,
                       GParamFlags flags = kReady) {
  return row<Member>(g_param_spec_boolean(name, nick, blurb, default_of<Member>(), flags));
}

// Returns the GType of an enumeration, registered at the first call. `values` has no terminator;
// its texts must live as long as the process.
GType enum_type(const char* type_name, std::span<const GEnumValue> values);

template <typename Enum>
struct EnumChoice {
  Enum value;
  const char* description;
  const char* nick;
};

// Makes a row for a member of an enumeration type. Several properties may share a type name and its
// values.
template <auto Member>
MemberRow<Member> choice(
    const char* name, const char* nick, const char* blurb, const char* type_name,
    std::initializer_list<EnumChoice<typename EnumOf<typename MemberRow<Member>::Type>::Type>>
        choices,
    GParamFlags flags = kReady) {
  using Enum = typename EnumOf<typename MemberRow<Member>::Type>::Type;
  std::vector<GEnumValue> values;
  for (const auto& known : choices)
    values.push_back({static_cast<int>(known.value), known.description, known.nick});
  return row<Member>(g_param_spec_enum(
      name, nick, blurb, enum_type(type_name, values),
      static_cast<int>(std::optional<Enum>(default_of<Member>()).value_or(Enum{})), flags));
}

// ---- into the class -----------------------------------------------------------------------------

// Registers an element. Makes its table `rows` first, because class_init has no way to fail if
// there is no memory for it. Returns false if the element is not registered.
template <typename Row>
gboolean register_element(GstPlugin* plugin, const char* name, GType type,
                          const std::vector<Row>& (*rows)()) noexcept {
  try {
    rows();
  } catch (const std::exception&) {
    return FALSE;
  }
  return gst_element_register(plugin, name, GST_RANK_NONE, type);
}

// Property i of the table has the id i + 1.
template <typename Row>
void install_properties(GObjectClass* klass, const std::vector<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    g_object_class_install_property(klass, static_cast<guint>(i + 1), rows[i].spec);
}

template <typename Row>
const Row& property_of(const std::vector<Row>& rows, guint id) {
  return rows.at(id - 1);
}

// Remembers properties that could not be set for lack of memory. GObject cannot report that to
// whoever sets one, and the element must not run as if it had not been set. The owner locks.
class LostProperties {
 public:
  // Sets property `id`. If that throws, the property counts as lost until it is set successfully.
  template <typename Values>
  void set(guint id, const Property<Values>& property, Values& values, const GValue* value) {
    lost_.set(id);
    property.set(values, value);
    lost_.reset(id);
  }
  // Sets the property in a copy, which replaces `values`.
  template <typename Values>
  void set(guint id, const Property<Values>& property, std::shared_ptr<const Values>& values,
           const GValue* value) {
    lost_.set(id);
    auto changed = std::make_shared<Values>(*values);
    property.set(*changed, value);
    values = std::move(changed);
    lost_.reset(id);
  }
  // Throws Error{out_of_memory}, which names a lost property, if there is one.
  template <typename Row>
  void check(const std::vector<Row>& rows) const {
    if (lost_.none()) return;
    guint id = 1;
    while (!lost_.test(id)) ++id;
    throw Error(ErrorCode::out_of_memory, std::string("there was not enough memory to set ") +
                                              property_of(rows, id).spec->name + "; set it again");
  }

 private:
  std::bitset<128> lost_;
};

// ---- changes while the pipeline runs ------------------------------------------------------------

// Makes the bindings of controllable properties set their values for this buffer.
void sync_controllers(GstElement* element, const GstSegment& segment, GstBuffer* buffer);

// Posts a warning that a property keeps the value `in_force` for now; `until` tells for how long.
void warn_of_fixed_property(GstElement* element, const GParamSpec* spec, const GValue* in_force,
                            const char* until);

// Warns in this way for each property whose value in `wanted` differs from `in_force` and that
// cannot change while playing. Call it without locks, because the application may answer the
// message at once.
template <typename Values>
void warn_unless_in_force(GstElement* element, const Property<Values>& property,
                          const Values& wanted, const Values& in_force,
                          const char* until = "until the element starts again") {
  if ((property.spec->flags & GST_PARAM_MUTABLE_PLAYING) != 0 || property.equal(wanted, in_force))
    return;
  GValue value = G_VALUE_INIT;
  g_value_init(&value, property.spec->value_type);
  property.get(in_force, &value);
  warn_of_fixed_property(element, property.spec, &value, until);
  g_value_unset(&value);
}

}  // namespace clinfer
