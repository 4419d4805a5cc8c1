// Formats messages of errors.
#include "kernels/base/error.h"

#include "kernels/base/text.h"

namespace clinfer {

namespace {

// Throws once while this library is loaded. GStreamer brings libunwind along on some systems, whose
// code then finds all handlers of the process, and which opens a pipe for the first one: in an
// application that has run out of file descriptors, the first exception would end the process.
[[maybe_unused]] const bool kHasThrown = [] {
  try {
    throw 0;
  } catch (int) {
  }
  return true;
}();

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  const std::string line = message_line(utf8_prefix(text, kLongest));
  return text.size() > kLongest ? line + "..." : line;
}

Error::Error(ErrorCode code, const std::string& message, SourcePlace place)
    : std::runtime_error(message_line(message)), code_(code), place_(place) {}

}  // namespace clinfer
