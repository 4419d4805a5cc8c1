// Reads and writes numbers with a point and without groups of digits, whatever locale the
// application has set.
#pragma once

#include <locale>
#include <sstream>

namespace clinfer {

// Parses the number at the beginning of `text`, as strtod() does in the locale "C". Sets `end`,
// unless it is null, to the character behind it.
double number_at(const char* text, char** end = nullptr);

// A stream for text that programs read.
class PlainStream : public std::ostringstream {
 public:
  PlainStream() { imbue(std::locale::classic()); }
};

}  // namespace clinfer
