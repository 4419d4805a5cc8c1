// Formats text of reports: by printf() into a string, and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace clinfer {

[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...);
// null where it is not finite, which JSON cannot say.
std::string json_number(double value);
inline const char* json_flag(bool value) { return value ? "true" : "false"; }
// Names, and values that are JSON already: json_quoted(), json_number() or one of the following.
using JsonMembers = std::vector<std::pair<std::string, std::string>>;
std::string json_object(const JsonMembers& members);
std::string json_array(const std::vector<std::string>& values);
std::string json_strings(const std::vector<std::string>& texts);  // quotes them
std::string json_or_null(const std::string& text);                // quotes it; null if it is empty

}  // namespace clinfer
