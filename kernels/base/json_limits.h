// Limits of JSON text, checked before a parser sees it: parsers recurse, and take some hundred bytes for
// each value. Every reader of JSON asks this first.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clinfer {

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int levels = 64;  // of objects and arrays in each other
  size_t values = size_t{2} << 20;
};

// Says why a text goes beyond the limits, or what stands outside of its strings that no JSON has
// (comments, for instance, which would hide from this what a parser sees): "line 3: more than 64
// levels"; "" if it may be parsed.
std::string json_excess(std::string_view text, const JsonLimits& limits = {});

}  // namespace clinfer
