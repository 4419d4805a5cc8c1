// Quoting for JSON.
#include "tuning/json_text.h"

#include <string_view>

#include "kernels/base/text.h"

namespace clinfer {

std::string json_text(const std::string& text) {
  static constexpr std::string_view kControls = "\n\t\r\b\f", kEscapes = "ntrbf";
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t at = kControls.find(c); at != std::string_view::npos) {
      out += {'\\', kEscapes[at]};
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return out + '"';
}

}  // namespace clinfer
