// Parses the texts of attributes.
#include "engine/ir/ir_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "kernels/base/text.h"

namespace clinfer {

namespace {

std::optional<int64_t> parse_dimension(std::string_view text) {
  text = trimmed(text);
  if (text == "?") return kDynamic;
  if (const size_t dots = text.find(".."); dots != std::string_view::npos) {
    const std::string_view low = text.substr(0, dots), high = text.substr(dots + 2);
    if ((!low.empty() && !parse_int(low)) || (!high.empty() && !parse_int(high))) return {};
    return kDynamic;
  }
  const auto value = parse_int(text);
  if (!value || *value < kDynamic) return {};
  return value;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  text = trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (trimmed(text).empty()) return shape;
  for (size_t begin = 0;;) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const auto dim = parse_dimension(text.substr(begin, comma - begin));
    if (!dim) return {};
    shape.push_back(*dim);
    if (comma == text.size()) return shape;
    begin = comma + 1;
  }
}

std::optional<StoredType> parse_element_type(std::string_view text) {
  using enum ElementType;
  struct Name {
    std::string_view element_type, precision;
    StoredType stored;
  };
  static constexpr Name names[] = {
      {"f32", "FP32", {32, f32, f32}},
      {"f16", "FP16", {16, f16, f32}},
      {"f64", "FP64", {64, f64, f32}},
      {"i8", "I8", {8, i8, i8}},
      {"u8", "U8", {8, u8, u8}},
      {"i16", "I16", {16, i16, i16}},
      {"u16", "U16", {16, u16, u16}},
      {"i32", "I32", {32, i32, i32}},
      {"u32", "U32", {32, u32, u32}},
      {"i64", "I64", {64, i64, i64}},
      {"u64", "U64", {64, u64, u64}},
      {"boolean", "BOOL", {8, boolean, boolean}},
      {"u1", "BIN", {1, u8, u8}},
      {"u4", "U4", {4, u8, u8}},
      {"i4", "I4", {4, i8, i8}},
      {"nf4", "NF4", {4, f32, f32}},
      {"f8e4m3", "F8E4M3", {8, u8, f32, &kFloat8E4M3}},
      {"f8e5m2", "F8E5M2", {8, u8, f32, &kFloat8E5M2}},
  };
  text = trimmed(text);
  for (const Name& name : names)
    if (text == name.element_type || text == name.precision) return name.stored;
  return {};
}

bool is_unspecified(std::string_view precision) {
  static constexpr std::string_view none[] = {"", "UNSPECIFIED", "UNDEFINED", "DYNAMIC", "MIXED"};
  return std::find(std::begin(none), std::end(none), trimmed(precision)) != std::end(none);
}

std::vector<std::string> parse_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      name += text[++i];
    } else if (i == text.size() || text[i] == ',') {
      if (!name.empty()) names.push_back(name);
      name.clear();
    } else {
      name += text[i];
    }
  }
  return names;
}

std::optional<int> parse_opset(std::string_view version) {
  constexpr std::string_view prefix = "opset";
  version = trimmed(version);
  if (!version.starts_with(prefix)) return {};
  const auto number = parse_int(version.substr(prefix.size()));
  if (!number || *number < 1 || *number > 1000) return {};
  return static_cast<int>(*number);
}

}  // namespace clinfer
