// Quoting for JSON.
#include "tuning/json_text.h"

#include <json-glib/json-glib.h>

#include <string_view>

namespace clinfer {

std::string json_text(const std::string& text) {
  const bool utf8 = g_utf8_validate(text.data(), static_cast<gssize>(text.size()), nullptr);
  static constexpr std::string_view kControls = "\n\t\r\b\f", kEscapes = "ntrbf";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t at = kControls.find(c); at != std::string_view::npos) {
      out += {'\\', kEscapes[at]};
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8) ? '?' : c;
  }
  return out + '"';
}

}  // namespace clinfer
