// Parses lines and zones from text and JSON.
#include "gst/zones/rules.h"

#include <json-glib/json-glib.h>

#include <algorithm>
#include <memory>

#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/json_text.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

constexpr size_t kMostZones = 1000, kMostPoints = 1000;

[[noreturn]] void refuse(const std::string& what, const std::string& why,
                         SourcePlace place = SourcePlace::here()) {
  throw Error{ErrorCode::bad_argument, what + ": " + why, place};
}

constexpr const char* kLinesTake =
    "takes NAME:X1,Y1,X2,Y2;... with whole numbers for pixels and numbers with a point for shares "
    "of the picture, as in door:0.1,0.5,0.9,0.5";
constexpr const char* kZonesTake =
    "takes NAME:X1,Y1,X2,Y2,X3,Y3,...;... with three points or more, whole numbers for pixels and "
    "numbers with a point for shares of the picture, as in yard:0.0,0.5,1.0,0.5,1.0,1.0,0.0,1.0";
constexpr const char* kFileTakes =
    "needs {\"lines\": [{\"name\": \"door\", \"points\": [[0.1, 0.5], [0.9, 0.5]]}], \"zones\": "
    "[{\"name\": \"yard\", \"points\": [[0.0, 0.5], [1.0, 0.5], [1.0, 1.0]]}]}, with whole numbers "
    "for pixels and numbers with a point for shares of the picture";

// Returns a member that is an array; null if there is none.
JsonArray* list_in(JsonObject* object, const char* name, const std::string& what) {
  JsonNode* node = json_object_get_member(object, name);
  if (node == nullptr) return nullptr;
  if (!JSON_NODE_HOLDS_ARRAY(node)) refuse(what, kFileTakes);
  return json_node_get_array(node);
}

Extent extent_of(JsonNode* node, const std::string& what) {
  if (node == nullptr || !JSON_NODE_HOLDS_VALUE(node)) refuse(what, kFileTakes);
  const bool is_share = json_node_get_value_type(node) == G_TYPE_DOUBLE;
  if (!is_share && json_node_get_value_type(node) != G_TYPE_INT64) refuse(what, kFileTakes);
  const double value =
      is_share ? json_node_get_double(node) : static_cast<double>(json_node_get_int(node));
  if (!(value >= 0) || value > (is_share ? 1.0 : 1e6)) refuse(what, kFileTakes);
  return {value, is_share};
}

}  // namespace

void ZoneRules::add(const std::string& property, Drawn drawn) {
  const size_t points = drawn.points.size();
  if (drawn.name.empty() || points > kMostPoints || (drawn.is_line ? points != 2 : points < 3))
    refuse(property, drawn.is_line ? kLinesTake : kZonesTake);
  for (const Drawn& other : zones_)
    if (other.name == drawn.name)
      refuse(property,
             "the name " + drawn.name + " is given twice; lines and zones need their own");
  if (zones_.size() == kMostZones) refuse(property, "more than 1000 lines and zones");
  zones_.push_back(std::move(drawn));
}

void ZoneRules::read_text(const char* property, const std::string& text, bool is_line) {
  if (text.empty()) return;
  const std::string what = std::string(property) + "=" + text;
  for (const std::string& part : split(text, ';')) {
    if (part.empty()) continue;
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos) refuse(what, is_line ? kLinesTake : kZonesTake);
    Drawn drawn{part.substr(0, colon), is_line, {}};
    const std::vector<std::string> numbers = split(part.substr(colon + 1), ',');
    for (size_t i = 0; i < numbers.size(); i += 2) {
      const auto x = extent_in(numbers[i]);
      const auto y = i + 1 < numbers.size() ? extent_in(numbers[i + 1]) : std::nullopt;
      if (!x || !y) refuse(what, is_line ? kLinesTake : kZonesTake);
      drawn.points.emplace_back(*x, *y);
    }
    add(what, std::move(drawn));
  }
}

void ZoneRules::read_file(const std::string& path) {
  const std::string what = "zones-file " + path;
  std::string text;
  try {
    text = file_text(path);
  } catch (const Error& error) {
    throw Error{error.code(), what + ": " + error.what(), error.place()};
  }
  JsonRoot root{nullptr, json_node_unref};
  try {
    root = parse_json(text);
  } catch (const Error& error) {
    refuse(what, printable(error.what()) + "; it " + kFileTakes, error.place());
  }
  if (!JSON_NODE_HOLDS_OBJECT(root.get())) refuse(what, kFileTakes);
  for (const bool is_line : {true, false}) {
    JsonArray* list = list_in(json_node_get_object(root.get()), is_line ? "lines" : "zones", what);
    for (guint i = 0; list != nullptr && i < json_array_get_length(list); ++i) {
      JsonNode* node = json_array_get_element(list, i);
      if (!JSON_NODE_HOLDS_OBJECT(node)) refuse(what, kFileTakes);
      JsonObject* object = json_node_get_object(node);
      JsonNode* name = json_object_get_member(object, "name");
      if (name == nullptr || !JSON_NODE_HOLDS_VALUE(name) ||
          json_node_get_value_type(name) != G_TYPE_STRING)
        refuse(what, kFileTakes);
      Drawn drawn{json_node_get_string(name), is_line, {}};
      JsonArray* points = list_in(object, "points", what);
      for (guint p = 0; points != nullptr && p < json_array_get_length(points); ++p) {
        JsonNode* point = json_array_get_element(points, p);
        if (!JSON_NODE_HOLDS_ARRAY(point) || json_array_get_length(json_node_get_array(point)) != 2)
          refuse(what, kFileTakes);
        JsonArray* pair = json_node_get_array(point);
        drawn.points.emplace_back(extent_of(json_array_get_element(pair, 0), what),
                                  extent_of(json_array_get_element(pair, 1), what));
      }
      add(what, std::move(drawn));
    }
  }
}

ZoneRules::ZoneRules(const std::string& lines, const std::string& zones, const std::string& file) {
  read_text("lines", lines, true);
  read_text("zones", zones, false);
  if (!file.empty()) read_file(file);
}

std::vector<Zone> ZoneRules::zones(int width, int height) const {
  std::vector<Zone> zones;
  for (const Drawn& drawn : zones_) {
    Zone& zone = zones.emplace_back(Zone{drawn.name, drawn.is_line, {}});
    for (const auto& [x, y] : drawn.points)
      zone.points.push_back({x.pixels(width), y.pixels(height)});
  }
  return zones;
}

}  // namespace clinfer
