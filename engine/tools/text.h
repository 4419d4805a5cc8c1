// Text of reports: printf() into a string, and JSON.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace clinfer {

[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...);
// null where it is not finite, which JSON cannot say.
std::string json_number(double value);
// The values are JSON already: json_quoted(), json_number() or one of these.
std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members);
std::string json_array(const std::vector<std::string>& values);
std::string json_strings(const std::vector<std::string>& texts);  // quotes them

}  // namespace clinfer
