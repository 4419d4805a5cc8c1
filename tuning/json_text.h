// Text as JSON.
#pragma once

#include <string>

namespace clinfer {

// Quoted and escaped. Text that is not UTF-8 (names that drivers give) gets '?' for its bytes above
// ASCII.
std::string json_text(const std::string& text);

}  // namespace clinfer
