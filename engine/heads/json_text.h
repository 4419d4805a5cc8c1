// The one way in which readers of JSON parse a text, be it a file, metadata of a model or a property.
#pragma once

#include <memory>
#include <string>

struct _JsonNode;  // of JSON-GLib, whose header stays in .cpp files

namespace clinfer {

using JsonRoot = std::unique_ptr<_JsonNode, void (*)(_JsonNode*)>;

// Never null. Throws Error{bad_argument} with the reason, which does not name the file, for what is no JSON or
// goes beyond JsonLimits.
JsonRoot parse_json(const std::string& text);

}  // namespace clinfer
