// Validation follows the table of well-formed byte sequences in the Unicode standard (3.9, D92).
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";   // U+FFFD
constexpr size_t kLongestHead = 3000, kLongestTail = 1000;  // bytes

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The length in bytes of the character at the start of `text`; 0 if it is invalid. `wrong` is then
// the number of bytes that one U+FFFD replaces.
size_t character(std::string_view text, size_t& wrong) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  wrong = 1;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  // The range of the second byte excludes overlong forms, surrogates and code points above
  // U+10FFFF.
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (text.size() < 2 || byte(1) < low || byte(1) > high) return 0;
  for (wrong = 2; wrong < length; ++wrong)
    if (wrong >= text.size() || !continues(text[wrong])) return 0;
  return length;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = c == '\n' ? ' ' : '?';
  return text;
}

}  // namespace

bool is_utf8(std::string_view text) {
  size_t wrong = 0;
  while (!text.empty()) {
    const size_t length = character(text, wrong);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  size_t wrong = 0;
  while (!text.empty()) {
    const size_t length = character(text, wrong);
    valid += length ? text.substr(0, length) : kReplacement;
    text.remove_prefix(length ? length : wrong);
  }
  return valid;
}

std::string_view utf8_prefix(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && bytes - end < 3 && continues(text[end])) --end;
  return text.substr(0, continues(text[end]) ? bytes : end);
}

std::string message_line(std::string_view text) {
  if (text.size() <= kLongestHead + kLongestTail) return one_line(valid_utf8(text));
  const std::string_view head = utf8_prefix(text, kLongestHead);
  std::string_view tail = text.substr(text.size() - kLongestTail);
  while (!tail.empty() && text.size() - kLongestTail + 3 > text.size() - tail.size() &&
         continues(tail.front()))
    tail.remove_prefix(1);
  const size_t left_out = text.size() - head.size() - tail.size();
  return one_line(valid_utf8(head) + " [... " + std::to_string(left_out) + " bytes ...] " +
                  valid_utf8(tail));
}

}  // namespace clinfer
