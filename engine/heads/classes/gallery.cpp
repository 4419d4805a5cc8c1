// Reads a gallery and compares with it.
#include "engine/heads/classes/gallery.h"

#include <json-glib/json-glib.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/heads/files/beside_readers.h"
#include "engine/heads/files/json_text.h"
#include "kernels/base/error.h"

namespace clinfer {
namespace {

// The vector with length 1; empty where it has none.
std::vector<float> direction_of(const std::vector<float>& values) {
  double square = 0;
  for (const float v : values) square += static_cast<double>(v) * v;
  if (!(square > 0) || !std::isfinite(square)) return {};
  std::vector<float> direction = values;
  for (float& v : direction) v = static_cast<float>(v / std::sqrt(square));
  return direction;
}

bool is_number(JsonNode* node) {
  return JSON_NODE_HOLDS_VALUE(node) && (json_node_get_value_type(node) == G_TYPE_DOUBLE ||
                                         json_node_get_value_type(node) == G_TYPE_INT64);
}

// Returns whether the array holds numbers alone.
bool is_vector(JsonArray* array) {
  const guint length = json_array_get_length(array);
  for (guint i = 0; i < length; ++i)
    if (!is_number(json_array_get_element(array, i))) return false;
  return length > 0;
}

std::vector<float> vector_of(JsonArray* array) {
  std::vector<float> values;
  for (guint i = 0; i < json_array_get_length(array); ++i)
    values.push_back(static_cast<float>(json_array_get_double_element(array, i)));
  return values;
}

}  // namespace

Gallery::Gallery(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error{ErrorCode::bad_argument,
                "gallery " + path + ": " + why + "; {\"name\": [[numbers], ...], ...} is needed"};
  };
  std::string text;
  try {
    text = file_text(path);
  } catch (const Error& error) {
    throw Error{error.code(), "gallery " + path + ": " + error.what(), error.place()};
  }
  JsonRoot root{nullptr, json_node_unref};
  try {
    root = parse_json(text);
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (!JSON_NODE_HOLDS_OBJECT(root.get())) refuse("is no object");
  JsonObject* object = json_node_get_object(root.get());
  const std::unique_ptr<GList, void (*)(GList*)> members(json_object_get_members(object),
                                                         g_list_free);
  for (const GList* item = members.get(); item != nullptr; item = item->next) {
    const auto* name = static_cast<const char*>(item->data);
    JsonNode* node = json_object_get_member(object, name);
    if (!JSON_NODE_HOLDS_ARRAY(node)) refuse(std::string("\"") + name + "\" has no list");
    JsonArray* array = json_node_get_array(node);
    std::vector<std::vector<float>> vectors;
    if (is_vector(array)) {
      vectors.push_back(vector_of(array));
    } else {
      for (guint i = 0; i < json_array_get_length(array); ++i) {
        JsonNode* element = json_array_get_element(array, i);
        if (!JSON_NODE_HOLDS_ARRAY(element) || !is_vector(json_node_get_array(element)))
          refuse(std::string("\"") + name + "\" has something that is no vector of numbers");
        vectors.push_back(vector_of(json_node_get_array(element)));
      }
    }
    for (const std::vector<float>& values : vectors) {
      std::vector<float> direction = direction_of(values);
      if (direction.empty()) refuse(std::string("\"") + name + "\" has a vector without a length");
      entries_.push_back({names_.size(), std::move(direction)});
    }
    names_.emplace_back(name);
  }
  if (entries_.empty()) refuse("has no vectors");
}

std::optional<Gallery::Nearest> Gallery::nearest(const std::vector<float>& values) const {
  const std::vector<float> direction = direction_of(values);
  if (direction.empty()) return {};
  const Entry* best = nullptr;
  double most = 0;
  for (const Entry& entry : entries_) {
    if (entry.direction.size() != direction.size()) continue;
    double cosine = 0;
    for (size_t i = 0; i < direction.size(); ++i)
      cosine += static_cast<double>(entry.direction[i]) * direction[i];
    if (best != nullptr && cosine <= most) continue;
    best = &entry;
    most = cosine;
  }
  if (best == nullptr) return {};
  return Nearest{best->name, names_[best->name], static_cast<float>(std::clamp(most, -1.0, 1.0))};
}

bool Gallery::has_vectors_of(size_t numbers) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.direction.size() == numbers; });
}

}  // namespace clinfer
