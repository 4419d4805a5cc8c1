// Implements access to parsed JSON.
#include "engine/heads/files/json_nodes.h"

#include <json-glib/json-glib.h>

#include <charconv>
#include <memory>

#include "kernels/base/numbers.h"

namespace clinfer {

JsonObject* object_of(JsonNode* node) {
  return node != nullptr && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : nullptr;
}
JsonArray* array_of(JsonNode* node) {
  return node != nullptr && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : nullptr;
}
JsonNode* member(JsonObject* object, const char* key) {
  return object != nullptr && json_object_has_member(object, key)
             ? json_object_get_member(object, key)
             : nullptr;
}
JsonObject* object_in(JsonObject* object, const char* key) {
  return object_of(member(object, key));
}

std::string text_of(JsonNode* node) {
  if (node == nullptr || !JSON_NODE_HOLDS_VALUE(node)) return {};
  switch (json_node_get_value_type(node)) {
    case G_TYPE_STRING:
      return json_node_get_string(node);
    case G_TYPE_BOOLEAN:
      return json_node_get_boolean(node) ? "true" : "false";
    case G_TYPE_INT64:
      return std::to_string(json_node_get_int(node));
    case G_TYPE_DOUBLE: {
      char text[40];
      const auto end = std::to_chars(text, text + sizeof text, json_node_get_double(node));
      return std::string(text, end.ptr);
    }
    default:
      return {};
  }
}
std::string text_in(JsonObject* object, const char* key) { return text_of(member(object, key)); }

bool is_true(JsonNode* node, bool otherwise) {
  return node != nullptr && JSON_NODE_HOLDS_VALUE(node) ? text_of(node) == "true" : otherwise;
}

std::optional<int64_t> integer_of(JsonNode* node) {
  if (node == nullptr || !JSON_NODE_HOLDS_VALUE(node) ||
      json_node_get_value_type(node) != G_TYPE_INT64)
    return std::nullopt;
  return json_node_get_int(node);
}

std::optional<std::string> string_of(JsonNode* node) {
  if (node == nullptr || !JSON_NODE_HOLDS_VALUE(node) ||
      json_node_get_value_type(node) != G_TYPE_STRING)
    return std::nullopt;
  return json_node_get_string(node);
}

std::vector<JsonNode*> elements_of(JsonNode* node) {
  std::vector<JsonNode*> elements;
  JsonArray* array = array_of(node);
  for (guint i = 0; array != nullptr && i < json_array_get_length(array); ++i)
    elements.push_back(json_array_get_element(array, i));
  return elements;
}

std::vector<std::string> texts_of(JsonNode* node) {
  std::vector<std::string> texts;
  for (JsonNode* element : elements_of(node)) texts.push_back(text_of(element));
  if (std::string text = text_of(node); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

std::vector<double> numbers_of(JsonNode* node) {
  std::vector<double> numbers;
  for (const std::string& text : texts_of(node)) numbers.push_back(number_at(text.c_str()));
  return numbers;
}

void each_member(JsonObject* object,
                 const std::function<void(const std::string&, JsonNode*)>& use) {
  if (object == nullptr) return;
  const std::unique_ptr<GList, void (*)(GList*)> keys(json_object_get_members(object), g_list_free);
  for (const GList* key = keys.get(); key != nullptr; key = key->next) {
    const auto* name = static_cast<const char*>(key->data);
    use(name, json_object_get_member(object, name));
  }
}

void each_object(JsonNode* array, const std::function<void(JsonObject*)>& use) {
  for (JsonNode* element : elements_of(array))
    if (JsonObject* object = object_of(element)) use(object);
}

}  // namespace clinfer
