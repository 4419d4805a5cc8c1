// Parses the attributes of a layer.
#include <cctype>
#include <charconv>

#include "kernels/base/text.h"
#include "kernels/op.h"

namespace clinfer {

namespace {

[[noreturn]] void bad(const std::string& name, const std::string& value, const char* what,
                      SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_model,
              "attribute " + name + "=\"" + printable(value) + "\" is not " + what, place);
}

int64_t parse_int(const std::string& name, const std::string& whole, std::string_view text) {
  text = trimmed(text);
  // Some tools write integers as floats: "1.0".
  if (const size_t dot = text.find('.');
      dot != text.npos && dot != 0 && text.find_first_not_of('0', dot + 1) == text.npos)
    text = text.substr(0, dot);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    bad(name, whole, "an integer");
  return value;
}

double parse_float(const std::string& name, const std::string& whole, std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size() ||
      (error != std::errc() && error != std::errc::result_out_of_range))
    bad(name, whole, "a number");
  return value;
}

// Splits at commas (and white space, which old converters wrote); empty text is an empty list.
template <typename T, typename Parse>
std::vector<T> parse_list(const std::string& name, const std::string& text, Parse parse) {
  std::vector<T> values;
  std::string_view rest = trimmed(text);
  while (!rest.empty()) {
    const size_t end = rest.find_first_of(", \t\n");
    values.push_back(parse(name, text, rest.substr(0, end)));
    if (end == std::string_view::npos) break;
    const size_t comma = rest.find_first_not_of(" \t\n", end);
    if (comma == std::string_view::npos) break;
    rest = rest.substr(rest[comma] == ',' ? comma + 1 : comma);
    rest = trimmed(rest);
  }
  return values;
}

}  // namespace

// Returns the text of an attribute, or nullptr if it is missing and has a default.
const std::string* Attributes::find(const std::string& name, bool has_default) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return &found->second;
  if (has_default) return nullptr;
  throw Error(ErrorCode::bad_model, "attribute " + name + " is missing");
}

int64_t Attributes::get_int(const std::string& name, std::optional<int64_t> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  return parse_int(name, *text, *text);
}

double Attributes::get_float(const std::string& name, std::optional<double> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  return parse_float(name, *text, *text);
}

bool Attributes::get_bool(const std::string& name, std::optional<bool> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  std::string lower;
  for (char c : trimmed(*text))
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "true" || lower == "1" || lower == "yes") return true;
  if (lower == "false" || lower == "0" || lower == "no") return false;
  bad(name, *text, "true or false");
}

std::string Attributes::get_string(const std::string& name,
                                   std::optional<std::string> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  return *text;
}

std::vector<int64_t> Attributes::get_ints(const std::string& name,
                                          std::optional<std::vector<int64_t>> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  return parse_list<int64_t>(name, *text, parse_int);
}

std::vector<double> Attributes::get_floats(const std::string& name,
                                           std::optional<std::vector<double>> otherwise) const {
  const std::string* text = find(name, otherwise.has_value());
  if (!text) return *otherwise;
  return parse_list<double>(name, *text, parse_float);
}

}  // namespace clinfer
