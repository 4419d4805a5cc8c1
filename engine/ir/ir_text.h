// The small grammars inside IR attributes: integers, shapes, element types, lists of names. All
// input is untrusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/tensor.h"

namespace clinfer {

inline constexpr int64_t kDynamic = -1;  // a dimension that the file leaves open

// A whole decimal integer, spaces around it allowed; nullopt for anything else.
std::optional<int64_t> parse_int(std::string_view text);
// "1, 3,300,300"; "" is a scalar. "?", "-1" and "1..8" are kDynamic. nullopt when malformed.
std::optional<Shape> parse_shape(std::string_view text);

// The type of elements in the .bin, and what they become in the graph.
struct StoredType {
  unsigned bits = 32;
  // The type as stored; of u1, u4, i4 and nf4 (4 bits, f32) what one element is unpacked to.
  ElementType type = ElementType::f32;
  ElementType in_graph = ElementType::f32;  // f16 and f64 become f32
};

// element_type="f16" or precision="FP16"; nullopt when there is no such type here.
std::optional<StoredType> parse_element_type(std::string_view text);
// True for a precision that says nothing ("", "UNSPECIFIED", ...).
bool is_unspecified(std::string_view precision);

// "a,b\,c" -> {"a", "b,c"}
std::vector<std::string> parse_names(std::string_view text);
// "opset7" -> 7, else nullopt.
std::optional<int> parse_opset(std::string_view version);

}  // namespace clinfer
