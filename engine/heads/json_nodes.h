// Access to parsed JSON that holds for any document: what is missing or of another type is empty.
#pragma once

#include <functional>
#include <string>
#include <vector>

// The type is JSON-GLib's, whose header stays in .cpp files.
typedef struct _JsonNode JsonNode;
typedef struct _JsonObject JsonObject;
typedef struct _JsonArray JsonArray;

namespace clinfer {

// Null where it is no object, no array, or has no such member.
JsonObject* object_of(JsonNode* node);
JsonArray* array_of(JsonNode* node);
JsonNode* member(JsonObject* object, const char* key);
// The object or array of a member.
JsonObject* object_in(JsonObject* object, const char* key);

// Scalars as text: numbers as they are written, true and false; "" for all else.
std::string text_of(JsonNode* node);
std::string text_in(JsonObject* object, const char* key);
bool is_true(JsonNode* node, bool otherwise);

// The scalars of an array, or the one scalar.
std::vector<std::string> texts_of(JsonNode* node);
std::vector<double> numbers_of(JsonNode* node);

// Calls use(key, value) for each member, in the document's order.
void each_member(JsonObject* object, const std::function<void(const std::string&, JsonNode*)>& use);
void each_object(JsonNode* array, const std::function<void(JsonObject*)>& use);

}  // namespace clinfer
