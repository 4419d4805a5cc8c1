// Messages of errors.
#include "kernels/base/error.h"

namespace clinfer {

namespace {

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == '\n' ? ' ' : '?';
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  std::string line = one_line(std::string(text.substr(0, kLongest)));
  if (text.size() > kLongest) line += "...";
  return line;
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(one_line(message)), code_(code) {}

}  // namespace clinfer
