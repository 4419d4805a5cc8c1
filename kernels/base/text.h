// Cleans text from files and drivers for use in messages, JSON and GStreamer.
#pragma once

#include <string>
#include <string_view>

namespace clinfer {

// True if all of `text` is UTF-8 as Unicode defines it: no surrogates, no overlong forms.
bool is_utf8(std::string_view text);

// Returns `text` with each invalid byte sequence replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// The longest prefix of at most `bytes` bytes that ends between two characters.
std::string_view utf8_prefix(std::string_view text, size_t bytes);

// Makes a complete message: one line of valid UTF-8 without control characters, at most a few
// thousand bytes. A longer text is cut in the middle, because messages begin with the place and end
// with advice.
std::string message_line(std::string_view text);

}  // namespace clinfer
