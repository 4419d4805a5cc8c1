// Formatting.
#include "engine/tools/text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

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

}  // namespace clinfer
