// Translates places in build logs of programs to those that the user knows.
#include "engine/ocl/compiler/build_log.h"

#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

namespace clinfer::ocl {

namespace {

// Lines of the text from `first` on (counted from 1) are the lines of `file` from `line` on.
struct Section {
  size_t first = 0, line = 0;
  std::string file;
};

// Parses directives such as `#line 7 "a \"name\".cl"`.
std::vector<Section> sections_of(const std::string& source) {
  constexpr std::string_view kDirective = "#line ";
  std::vector<Section> sections;
  std::istringstream lines(source);
  size_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    if (!text.starts_with(kDirective)) continue;
    Section section{number + 1, 0, ""};
    const char* const end = text.data() + text.size();
    const char* at = std::from_chars(text.data() + kDirective.size(), end, section.line).ptr;
    while (at != end && *at != '"') ++at;
    for (at += at != end; at != end && *at != '"'; ++at) {
      if (*at == '\\' && at + 1 != end) ++at;
      section.file += *at;
    }
    if (!section.file.empty()) sections.push_back(section);
  }
  return sections;
}

}  // namespace

std::string place_in_files(const std::string& log, const std::string& source) {
  constexpr std::string_view kText = "<kernel>:";
  const std::vector<Section> sections = sections_of(source);
  std::string placed;
  size_t from = 0;
  for (size_t at; (at = log.find(kText, from)) != std::string::npos;) {
    size_t line = 0;
    const char* const digits = log.data() + at + kText.size();
    const char* const end = std::from_chars(digits, log.data() + log.size(), line).ptr;
    const Section* in = nullptr;
    for (const Section& section : sections)
      if (section.first <= line) in = &section;
    placed.append(log, from, at - from);
    from = static_cast<size_t>(end - log.data());
    if (in != nullptr && end != digits)
      placed += in->file + ":" + std::to_string(line - in->first + in->line);
    else
      placed.append(log, at, from - at);
  }
  return placed.append(log, from);
}

}  // namespace clinfer::ocl
