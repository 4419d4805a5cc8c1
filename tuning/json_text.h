// Text as JSON.
#pragma once

#include <string>

namespace clinfer {

// Quoted and escaped. Bytes that are not UTF-8 (in names that drivers give) become U+FFFD.
std::string json_text(const std::string& text);

}  // namespace clinfer
