// Parses JSON text, be it a file, metadata of a model or a property. All readers of JSON use this.
#pragma once

#include <memory>
#include <string>

struct _JsonNode;  // of JSON-GLib, whose header stays in .cpp files

namespace clinfer {

using JsonRoot = std::unique_ptr<_JsonNode, void (*)(_JsonNode*)>;

// Never returns null. Throws Error{bad_argument} with the reason, which does not name the file, for
// text that is no JSON or exceeds JsonLimits.
JsonRoot parse_json(const std::string& text);

}  // namespace clinfer
