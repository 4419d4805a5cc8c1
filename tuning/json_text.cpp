// Quoting for JSON.
#include "tuning/json_text.h"

#include <json-glib/json-glib.h>

#include <cstdio>

namespace clinfer {

std::string json_text(const std::string& text) {
  const bool utf8 = g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += byte >= 0x80 && !utf8 ? '?' : c;
  }
  return out + '"';
}

}  // namespace clinfer
