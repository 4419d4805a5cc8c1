// Cleans text from files and drivers for use in messages, JSON and GStreamer.
#pragma once

#include <string>
#include <string_view>

namespace clinfer {

// Returns true if all of `text` is UTF-8 as Unicode defines it: no surrogates, no overlong forms.
bool is_utf8(std::string_view text);

// Returns `text` with each invalid byte sequence replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Returns the longest prefix of at most `bytes` bytes that ends between two characters.
std::string_view utf8_prefix(std::string_view text, size_t bytes);

// Returns the part of `text` between the blanks, tabs and line ends around it.
std::string_view trimmed(std::string_view text);

// Returns foreign text in a form that may be shown to people, on a terminal, in a log or in a
// drawing: one line of valid UTF-8, in which nothing moves the cursor, forges another line or
// reverses the direction of what follows. Such characters become '?', line ends a blank.
std::string safe_line(std::string_view text);

// Returns a safe_line() in quotation marks for Graphviz.
std::string quoted_line(std::string_view text);

// Returns the whole text as JSON, in quotation marks. Characters that safe_line() would replace are
// escaped, so that they are harmless on a terminal and a parser restores them; bytes that are not
// UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

// Makes a complete message: a safe_line() of at most a few thousand bytes. A longer text is cut in
// the middle, because messages begin with the place and end with advice.
std::string message_line(std::string_view text);

}  // namespace clinfer
