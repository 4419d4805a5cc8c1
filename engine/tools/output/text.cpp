// Formats texts of reports.
#include "engine/tools/output/text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "kernels/base/text.h"

namespace clinfer {

std::string format(const char* form, ...) {
  va_list arguments, again;
  va_start(arguments, form);
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, form, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, form, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string json_number(double value) {
  return std::isfinite(value) ? format("%.6g", value) : "null";
}

std::string json_object(const JsonMembers& members) {
  std::string text;
  for (const auto& [name, value] : members)
    text += (text.empty() ? "" : ",") + json_quoted(name) + ":" + value;
  return "{" + text + "}";
}

std::string json_array(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return "[" + text + "]";
}

std::string json_strings(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(json_quoted(text));
  return json_array(quoted);
}

std::string json_or_null(const std::string& text) {
  return text.empty() ? "null" : json_quoted(text);
}

}  // namespace clinfer
