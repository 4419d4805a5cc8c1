// Code shared by operations that move data: reading axes and constant inputs of untrusted models,
// dispatch by element type, strided copies on the host, and evaluate() for operations that are
// views.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/op.h"

namespace clinfer {

// The largest number of elements of a tensor that kernels can address, because they index by int.
inline constexpr int64_t kMaxIndex = std::numeric_limits<int32_t>::max();

// The type in which values of type T are added and multiplied: integers wrap.
template <typename T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a >= 0, b > 0

// n / divisor = n * scale >> shift, in 64 bits, for 0 <= n < 2^31 and 1 <= divisor < 2^31. Division
// is a loop of some twenty instructions on GPUs.
struct Quotient {
  uint32_t scale;
  int shift;
};
constexpr Quotient quotient_by(int64_t divisor) {
  int bits = 0;
  while (int64_t{1} << bits < divisor) ++bits;
  return {static_cast<uint32_t>((uint64_t{1} << (31 + bits)) / static_cast<uint64_t>(divisor) + 1),
          31 + bits};
}

[[noreturn]] void fail_model(const std::string& what,
                             SourcePlace place = SourcePlace::here());  // throws Error{bad_model}
[[noreturn]] void fail_unsupported(const std::string& what,
                                   // Throws Error{unsupported}.
                                   SourcePlace place = SourcePlace::here());

// Returns the versions `first` to `last`, for an operation that is the same in all of them.
std::vector<int> opset_range(int first, int last = 16);

// Throws unless the operation has `least` to `most` inputs.
void check_inputs(const ShapeContext& context, size_t least, size_t most);
void check_rank(const Shape& shape, size_t least, size_t most, const char* what);

// Returns `axis` in 0..rank-1; negative ones count from the end. Throws Error{bad_model} that names
// `what`.
size_t checked_axis(int64_t axis, size_t rank, const char* what);
// Return the product. Throw Error{unsupported} above 2^31 - 1 and Error{bad_model} below 0;
// dimensions next to a 0 count as well.
int64_t checked_count(const Shape& shape);
int64_t checked_product(int64_t a, int64_t b);

// Returns whether input `i` exists.
inline bool has_input(const ShapeContext& context, size_t i) { return i < context.inputs.size(); }
// Return the integers of constant input `i`. Throw Error{unsupported} if it is not constant, and
// Error{bad_model} if it has no integers or more than one dimension.
std::vector<int64_t> constant_ints(const ShapeContext& context, size_t i, const char* what);
// For a single element.
int64_t constant_int(const ShapeContext& context, size_t i, const char* what);
// Return the only number of a tensor that evaluate() reads. Throw Error{bad_model} if there is
// none.
int64_t one_int(const Tensor& tensor, const char* what);
float one_float(const Tensor& tensor, const char* what);

// Copies elements between `from` and `to`, the addresses of index 0, with strides in elements of
// `element_size` bytes (1, 2, 4, 8).
void copy_strided(size_t element_size, const Shape& shape, const void* from,
                  const Shape& from_strides, void* to, const Shape& to_strides);
// Makes a dense copy of `view`, which lies in the row-major tensor `from`, in the row-major tensor
// `to`.
void copy_view(const Tensor& from, const TensorDesc& view, Tensor& to);
// Copies all bytes; both must have the same type and number of elements.
void copy_all(const Tensor& from, Tensor& to);

// For a matrix, returns the rows before those that a kernel has marked as unused
// (OpDef::rows_depend_on_data); returns any other tensor unchanged.
Tensor trim_unused_rows(const Tensor& filled);

// Advances `index` to the next one in row-major order; returns false after the last.
inline bool next_index(Shape& index, const Shape& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

// Calls f with a value of the unsigned type of the element's size, for code that only moves
// elements.
template <typename F>
void with_size(ElementType type, F&& f) {
  switch (size_of(type)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// Calls f with a value of the element's C++ type, for code that computes. Floats are f32 (or f64).
template <typename F>
void with_number(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f(float{});
    case ElementType::f64:
      return f(double{});
    case ElementType::i8:
      return f(int8_t{});
    case ElementType::u8:
    case ElementType::boolean:
      return f(uint8_t{});
    case ElementType::i16:
      return f(int16_t{});
    case ElementType::u16:
      return f(uint16_t{});
    case ElementType::i32:
      return f(int32_t{});
    case ElementType::u32:
      return f(uint32_t{});
    case ElementType::i64:
      return f(int64_t{});
    case ElementType::u64:
      return f(uint64_t{});
    case ElementType::f16:
    case ElementType::f8e4m3:
      break;
  }
  fail_unsupported("computing on " + std::string(name_of(type)) + " values on the host");
}

// Writes integers in the tensor's own type.
template <typename Values>
void store_ints(const Values& values, Tensor& tensor) {
  with_number(tensor.type(), [&](auto zero) {
    auto* to = tensor.mutable_data<decltype(zero)>();
    for (const auto& value : values) *to++ = static_cast<decltype(zero)>(value);
  });
}

// Returns the element type that an attribute states ("i32", "f32", ...).
ElementType parse_type(const std::string& name);
// Does what the function above does, for attributes that allow only i32 and i64.
ElementType index_type(const Attributes& attributes, const char* name,
                       ElementType otherwise = ElementType::i64);

// Returns an attribute that keeps a divisor from 0; throws Error{bad_model} if it is none.
float positive_epsilon(const Attributes& attributes, const char* name);

}  // namespace clinfer
