// Checks that files are text.
#pragma once

#include <cstddef>
#include <string_view>

namespace clinfer {

// Returns the number of the first line, from 1, that is not UTF-8 or has a zero byte; 0 if all are.
size_t line_that_is_no_text(std::string_view text);

}  // namespace clinfer
