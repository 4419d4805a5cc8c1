// Checks limits in one pass over the text, without allocating memory.
#include "kernels/base/json_limits.h"

#include <charconv>

namespace clinfer {

namespace {

bool is_of_json(char c) {
  constexpr std::string_view kMarks = " \t\r\n{}[]:,\"+-.";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}

// Returns the code unit of an escape like \u00e9 at the start of `text`; -1 if there is none.
int code_unit(std::string_view text) {
  unsigned unit = 0;
  if (text.size() < 6 || text.substr(0, 2) != "\\u") return -1;
  const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return problem == std::errc() && end == text.data() + 6 ? static_cast<int>(unit) : -1;
}

// Returns the length of the escape at the start of `text`, of both halves of a surrogate pair; 0 if
// JSON has no such escape.
size_t escape_length(std::string_view text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  if (text.size() >= 2 && kLetters.find(text[1]) != std::string_view::npos) return 2;
  const int first = code_unit(text);
  if (first < 0xd800 || first > 0xdfff) return first < 0 ? 0 : 6;
  const int second = first < 0xdc00 ? code_unit(text.substr(6)) : -1;
  return second >= 0xdc00 && second <= 0xdfff ? 12 : 0;
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
      if (c == '"') quoted = false;
      if (c != '\\') continue;
      const size_t length = escape_length(text.substr(i));
      if (length == 0) return "is not JSON: " + here("an escape that JSON does not have");
      if (text.substr(i, length) == "\\u0000") return here("a zero character");
      i += length - 1;
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
