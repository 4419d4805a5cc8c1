// Limits of JSON text. Parsers recurse, and take some hundred bytes for each value, so every reader
// of JSON checks a text before it parses it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clinfer {

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int levels = 64;  // depth of nested objects and arrays
  size_t values = size_t{2} << 20;
};

// Returns how a text exceeds the limits ("line 3: more than 64 levels"), or which characters
// outside of its strings and which escapes inside are no JSON; "" if it may be parsed. Comments, for
// example, would hide from this check what a parser sees, JSON-GLib makes bytes that are not UTF-8
// of wrong escapes, and its strings end at a zero character.
std::string json_excess(std::string_view text, const JsonLimits& limits = {});

}  // namespace clinfer
