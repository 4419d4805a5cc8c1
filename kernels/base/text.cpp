// Cleans and checks text. Validation follows the table of well-formed byte sequences in the Unicode
// standard (3.9, D92).
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";   // U+FFFD
constexpr size_t kLongestHead = 3000, kLongestTail = 1000;  // bytes

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Returns the length in bytes of the character at the start of `text`; 0 if it is invalid. `wrong`
// is then the number of bytes that one U+FFFD replaces.
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

unsigned code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  unsigned code = byte(0) & (0xff >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

// Returns false for characters that a message must not show: controls (C0, DEL, C1), separators of
// lines and paragraphs, changes of the text's direction, and non-characters. Joiners inside of
// words are allowed. `character` is one valid character.
bool is_harmless(std::string_view character) {
  const unsigned code = code_point(character);
  constexpr struct {
    unsigned first, last;
  } kHarmful[] = {{0, 0x1f},        {0x7f, 0x9f},      {0x61c, 0x61c},   {0x200b, 0x200b},
                  {0x200e, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
                  {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
  for (const auto& range : kHarmful)
    if (code >= range.first && code <= range.last) return false;
  return true;
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

std::string safe_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  size_t wrong = 0;
  while (!text.empty()) {
    const size_t length = character(text, wrong);
    if (length == 0)
      line += kReplacement;
    else if (is_harmless(text.substr(0, length)))
      line += text.substr(0, length);
    else
      line += text[0] == '\n' ? ' ' : '?';
    text.remove_prefix(length ? length : wrong);
  }
  return line;
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::string json_quoted(std::string_view text) {
  static constexpr std::string_view kShort = "\n\t\r\b\f", kLetters = "ntrbf";
  std::string json = "\"";
  const auto escape = [&json](unsigned unit) {
    constexpr char kDigits[] = "0123456789abcdef";
    json += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) json += kDigits[unit >> shift & 15];
  };
  size_t wrong = 0;
  for (size_t length; !text.empty(); text.remove_prefix(length ? length : wrong)) {
    length = character(text, wrong);
    const std::string_view one = text.substr(0, length);
    if (length == 0) {
      json += kReplacement;
    } else if (one == "\"" || one == "\\") {
      json += '\\';
      json += one;
    } else if (is_harmless(one)) {
      json += one;
    } else if (const size_t at = kShort.find(one[0]); at != std::string_view::npos) {
      json += '\\';
      json += kLetters[at];
    } else if (const unsigned code = code_point(one); code < 0x10000) {
      escape(code);
    } else {  // two surrogates are needed
      escape(0xd800 + ((code - 0x10000) >> 10));
      escape(0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  return json + '"';
}

std::string quoted_line(std::string_view text) {
  std::string quoted;
  for (const char c : safe_line(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

std::string_view utf8_prefix(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && bytes - end < 3 && continues(text[end])) --end;
  return text.substr(0, continues(text[end]) ? bytes : end);
}

std::string message_line(std::string_view text) {
  if (text.size() <= kLongestHead + kLongestTail) return safe_line(text);
  const std::string_view head = utf8_prefix(text, kLongestHead);
  std::string_view tail = text.substr(text.size() - kLongestTail);
  while (!tail.empty() && text.size() - kLongestTail + 3 > text.size() - tail.size() &&
         continues(tail.front()))
    tail.remove_prefix(1);
  const size_t left_out = text.size() - head.size() - tail.size();
  return safe_line(head) + " [... " + std::to_string(left_out) + " bytes ...] " + safe_line(tail);
}

}  // namespace clinfer
