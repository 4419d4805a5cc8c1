// Pages of HTML that show what a command has measured; they need nothing from elsewhere.
#pragma once

#include <string>
#include <vector>

namespace clinfer {

// Writes a page about `json`, what the command `kind` ("bench", "tune") prints with --json, bench's
// with `latencies` besides. Throws Error{io}.
void write_report(const std::string& path, const std::string& kind, const std::string& json);

// Returns at most `count` of sorted values, evenly spread, with the first and the last.
std::vector<double> thinned(const std::vector<double>& values, size_t count);

}  // namespace clinfer
