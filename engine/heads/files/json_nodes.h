// Access to parsed JSON that works for any document: a missing value, or one of another type, is
// empty.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// The type is JSON-GLib's, whose header stays in .cpp files.
typedef struct _JsonNode JsonNode;
typedef struct _JsonObject JsonObject;
typedef struct _JsonArray JsonArray;

namespace clinfer {

// Return null if the node is no object or array, or has no such member.
JsonObject* object_of(JsonNode* node);
JsonArray* array_of(JsonNode* node);
JsonNode* member(JsonObject* object, const char* key);
// Return the object or array of a member.
JsonObject* object_in(JsonObject* object, const char* key);

// Return scalars as text: numbers as they are written, true and false; "" for everything else.
std::string text_of(JsonNode* node);
std::string text_in(JsonObject* object, const char* key);
bool is_true(JsonNode* node, bool otherwise);

// Return a value that is of this very type, for readers that refuse all others.
std::optional<int64_t> integer_of(JsonNode* node);
std::optional<std::string> string_of(JsonNode* node);

// Returns the elements of an array.
std::vector<JsonNode*> elements_of(JsonNode* node);
// Return the scalars of an array, or a single scalar.
std::vector<std::string> texts_of(JsonNode* node);
std::vector<double> numbers_of(JsonNode* node);

// Call the function for each member, in the document's order, or for each object of an array.
void each_member(JsonObject* object, const std::function<void(const std::string&, JsonNode*)>& use);
void each_object(JsonNode* array, const std::function<void(JsonObject*)>& use);

}  // namespace clinfer
