// Parses the small grammars inside IR attributes: integers, shapes, element types, lists of names.
// All input is untrusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/float8.h"
#include "kernels/base/tensor.h"

namespace clinfer {

inline constexpr int64_t kDynamic = -1;  // a dimension that the file leaves open

// Parses a whole decimal integer, with optional spaces around it; returns nullopt for anything
// else.
std::optional<int64_t> parse_int(std::string_view text);
// Parses "1, 3,300,300"; "" is a scalar. "?", "-1" and "1..8" become kDynamic. Returns nullopt for
// malformed text.
std::optional<Shape> parse_shape(std::string_view text);

// The type of elements in the .bin, and their type in the graph.
struct StoredType {
  unsigned bits = 32;
  // The type as stored; for u1, u4, i4 and nf4 (4 bits, f32) the type to which an element is
  // unpacked.
  ElementType type = ElementType::f32;
  ElementType in_graph = ElementType::f32;  // f16 and f64 become f32
  const Float8Format* float8 = nullptr;     // the format of floats that are stored as bytes
};

// Parses element_type="f16" or precision="FP16"; returns nullopt for a type that is not supported.
std::optional<StoredType> parse_element_type(std::string_view text);
// Returns true for a precision that states nothing ("", "UNSPECIFIED", ...).
bool is_unspecified(std::string_view precision);

// Splits names: "a,b\,c" -> {"a", "b,c"}
std::vector<std::string> parse_names(std::string_view text);
// Parses "opset7" to 7; returns nullopt for anything else.
std::optional<int> parse_opset(std::string_view version);

}  // namespace clinfer
