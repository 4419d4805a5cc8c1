// Checks limits in one pass over the text, without allocating memory.
#include "kernels/base/json_limits.h"

namespace clinfer {

namespace {

bool is_of_json(char c) {
  constexpr std::string_view kMarks = " \t\r\n{}[]:,\"+-.";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}

}  // namespace

std::string json_excess(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return "larger than " + std::to_string(limits.bytes >> 20) + " MiB";
  size_t line = 1, values = 0;
  int levels = 0;
  bool quoted = false;
  const auto here = [&](const std::string& what) {
    return "line " + std::to_string(line) + ": " + what;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (!is_of_json(c)) return "is not JSON: " + here("a character that JSON has in strings only");
    if (c == '"') quoted = true;
    if ((c == '{' || c == '[') && ++levels > limits.levels)
      return here("more than " + std::to_string(limits.levels) + " levels");
    if (c == '}' || c == ']') --levels;
    if ((c == '{' || c == '[' || c == ',') && ++values > limits.values)
      return here("more than " + std::to_string(limits.values) + " values");
  }
  return "";
}

}  // namespace clinfer
