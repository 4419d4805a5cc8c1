// Formats messages of errors.
#include "kernels/base/error.h"

#include "kernels/base/text.h"

namespace clinfer {

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  const std::string line = message_line(utf8_prefix(text, kLongest));
  return text.size() > kLongest ? line + "..." : line;
}

Error::Error(ErrorCode code, const std::string& message, SourcePlace place)
    : std::runtime_error(message_line(message)), code_(code), place_(place) {}

}  // namespace clinfer
