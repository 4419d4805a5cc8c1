// Text that comes from files and drivers, made fit for messages, JSON and GStreamer.
#pragma once

#include <string>
#include <string_view>

namespace clinfer {

// True where all of `text` is UTF-8 as Unicode defines it: no surrogates, no overlong forms.
bool is_utf8(std::string_view text);

// `text` with U+FFFD for each sequence of bytes that is not UTF-8.
std::string valid_utf8(std::string_view text);

// The longest part from the start that has at most `bytes` bytes and ends between two characters.
std::string_view utf8_prefix(std::string_view text, size_t bytes);

// A whole message: one line of valid UTF-8 without control characters, of a few thousand bytes at
// most. What is longer loses its middle, because messages begin with the place and end with advice.
std::string message_line(std::string_view text);

}  // namespace clinfer
