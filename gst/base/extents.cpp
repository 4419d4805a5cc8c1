// Parses lengths and lists.
#include "gst/base/extents.h"

#include <glib.h>

#include <algorithm>
#include <cmath>

namespace clinfer {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (;;) {
    const size_t end = std::min(text.find(separator, at), text.size());
    const size_t first = text.find_first_not_of(" \t", at);
    const size_t last = end == 0 ? std::string::npos : text.find_last_not_of(" \t", end - 1);
    parts.push_back(first < end && last != std::string::npos && last >= first
                        ? text.substr(first, last - first + 1)
                        : "");
    if (end == text.size()) return parts;
    at = end + 1;
  }
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = g_ascii_strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Extent> extent_in(const std::string& text) {
  const std::optional<double> value = number_in(text);
  if (!value || *value < 0) return std::nullopt;
  const Extent extent{*value, text.find('.') != std::string::npos};
  if (extent.is_share && extent.value > 1) return std::nullopt;
  return extent;
}

}  // namespace clinfer
