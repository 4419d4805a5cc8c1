// Checks that files are text, and of a size that readers take.
#pragma once

#include <cstddef>
#include <string_view>

namespace clinfer {

// Limit of the bytes of a file beside a model (labels, metadata, galleries), as that of JsonLimits:
// it is read whole, and readers take some hundred bytes for each of its values.
inline constexpr size_t kLargestFile = size_t{16} << 20;

// Returns the number of the first line, from 1, that is not UTF-8 or has a zero byte; 0 if all are.
size_t line_that_is_no_text(std::string_view text);

}  // namespace clinfer
