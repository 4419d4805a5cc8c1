// Checks that files are text.
#include "engine/heads/files/text_lines.h"

#include <algorithm>

#include "kernels/base/text.h"

namespace clinfer {

size_t line_that_is_no_text(std::string_view text) {
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (!is_utf8(line) || line.find('\0') != line.npos) return number;
    at = end + 1;
  }
  return 0;
}

}  // namespace clinfer
