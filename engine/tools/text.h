// Text of reports: printf() into a string, numbers as JSON has them.
#pragma once

#include <string>

namespace clinfer {

[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...);
// null where it is not finite, which JSON cannot say.
std::string json_number(double value);

}  // namespace clinfer
