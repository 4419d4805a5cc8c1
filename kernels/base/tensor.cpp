// Implements host tensors and strided copies.
#include "kernels/base/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/base/default_floats.h"
#include "kernels/base/error.h"
#include "kernels/base/float8.h"

namespace clinfer {

size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
    case ElementType::f8e4m3:
      return 1;
    case ElementType::f16:
    case ElementType::i16:
    case ElementType::u16:
      return 2;
    case ElementType::f32:
    case ElementType::i32:
    case ElementType::u32:
      return 4;
    case ElementType::f64:
    case ElementType::i64:
    case ElementType::u64:
      return 8;
  }
  return 0;
}

std::string_view name_of(ElementType type) {
  constexpr std::string_view names[] = {"f32", "f16", "f64", "i8",  "u8",      "i16",   "u16",
                                        "i32", "u32", "i64", "u64", "boolean", "f8e4m3"};
  return names[static_cast<size_t>(type)];
}

bool is_float(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::f64;
}

bool is_quantized(ElementType type) {
  return type == ElementType::u8 || type == ElementType::f8e4m3;
}

int64_t count(const Shape& shape) {
  int64_t product = 1;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(product, dim, &product))
      throw Error(ErrorCode::bad_model, "shape " + to_string(shape) + " is too large");
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Shape channels_last_strides(const Shape& shape) {
  if (shape.size() < 3 || shape.size() > 5) return row_major_strides(shape);
  Shape strides(shape.size());
  strides[1] = 1;
  int64_t stride = shape[1];
  for (size_t i = shape.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  strides[0] = stride;
  return strides;
}

TensorDesc TensorDesc::row_major(ElementType type, Shape shape) {
  Shape strides = row_major_strides(shape);
  return {type, std::move(shape), std::move(strides), 0};
}

TensorDesc TensorDesc::channels_last(ElementType type, Shape shape) {
  Shape strides = channels_last_strides(shape);
  return {type, std::move(shape), std::move(strides), 0};
}

std::pair<int64_t, int64_t> TensorDesc::byte_range() const {
  int64_t low = offset, high = offset;
  for (size_t i = 0; i < shape.size(); ++i)
    (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
  const auto size = static_cast<int64_t>(size_of(type));
  return {low * size, (high + 1) * size};
}

int64_t TensorDesc::span() const {
  if (elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * std::abs(strides[i]);
  return last + 1;
}

static bool same_strides(const TensorDesc& desc, const Shape& strides) {
  for (size_t i = 0; i < desc.shape.size(); ++i)
    if (desc.shape[i] != 1 && desc.strides[i] != strides[i]) return false;
  return true;
}

bool TensorDesc::is_row_major() const { return same_strides(*this, row_major_strides(shape)); }
bool TensorDesc::is_channels_last() const {
  return same_strides(*this, channels_last_strides(shape));
}

bool TensorDesc::is_dense() const {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && strides[i] <= 0) return false;
  // Distinct strides have no gaps if, sorted, each is the product of the sizes before it.
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (size_t i : order) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Tensor Tensor::allocate(ElementType type, Shape shape) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.shape_ = std::move(shape);
  const size_t bytes = std::max<size_t>(tensor.bytes(), 1);
  auto storage = std::shared_ptr<void>(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
  if (!storage)
    throw Error(ErrorCode::out_of_memory,
                "no memory for a tensor of " + std::to_string(bytes) + " bytes");
  std::memset(storage.get(), 0, bytes);
  tensor.data_ = storage.get();
  tensor.owner_ = std::move(storage);
  return tensor;
}

Tensor Tensor::view(ElementType type, Shape shape, const void* data,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.shape_ = std::move(shape);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  Tensor tensor = *this;
  if (count(shape) != elements())
    throw Error(ErrorCode::bad_argument,
                "cannot view " + to_string(shape_) + " as " + to_string(shape));
  tensor.shape_ = std::move(shape);
  return tensor;
}

namespace {

struct Half {
  uint16_t bits;
};

struct Float8 {
  uint8_t bits;
};

// A byte of a boolean tensor. A model's bytes may have any value, but a C++ bool must be 0 or 1.
struct Boolean {
  uint8_t byte;
};

// Calls f with a null pointer of the C++ type of `type`, from which a generic f takes the type.
template <typename F>
void with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f(static_cast<float*>(nullptr));
    case ElementType::f16:
      return f(static_cast<Half*>(nullptr));
    case ElementType::f64:
      return f(static_cast<double*>(nullptr));
    case ElementType::i8:
      return f(static_cast<int8_t*>(nullptr));
    case ElementType::u8:
      return f(static_cast<uint8_t*>(nullptr));
    case ElementType::i16:
      return f(static_cast<int16_t*>(nullptr));
    case ElementType::u16:
      return f(static_cast<uint16_t*>(nullptr));
    case ElementType::i32:
      return f(static_cast<int32_t*>(nullptr));
    case ElementType::u32:
      return f(static_cast<uint32_t*>(nullptr));
    case ElementType::i64:
      return f(static_cast<int64_t*>(nullptr));
    case ElementType::u64:
      return f(static_cast<uint64_t*>(nullptr));
    case ElementType::boolean:
      return f(static_cast<Boolean*>(nullptr));
    case ElementType::f8e4m3:
      return f(static_cast<Float8*>(nullptr));
  }
}

template <typename To, typename From>
To convert_one(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    return convert_one<To>(half_to_float(value.bits));
  } else if constexpr (std::is_same_v<From, Float8>) {
    return convert_one<To>(float8_value(value.bits, kFloat8E4M3));
  } else if constexpr (std::is_same_v<From, Boolean>) {
    return convert_one<To>(static_cast<uint8_t>(value.byte != 0));
  } else if constexpr (std::is_same_v<To, Half>) {
    return Half{float_to_half(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, Float8>) {
    return Float8{float8_bits(static_cast<float>(value), kFloat8E4M3)};
  } else if constexpr (std::is_same_v<To, Boolean>) {
    return Boolean{static_cast<uint8_t>(value != From{0})};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Saturates, and turns NaN into 0, because out-of-range conversions are undefined in C++.
    if (std::isnan(value)) return To{0};
    if (value <= static_cast<From>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Converts a run of elements. Adjacent elements have a separate loop, which compilers vectorise.
template <typename From, typename To>
void convert_run(const From* __restrict from, int64_t from_stride, To* __restrict to,
                 int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = convert_one<To>(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i * to_stride] = convert_one<To>(from[i * from_stride]);
}

// Merges adjacent dimensions that have one common stride on both sides.
void merge_runs(Shape& shape, Shape& from_strides, Shape& to_strides) {
  for (size_t d = shape.size(); d-- > 1;) {
    const bool one_run = from_strides[d - 1] == from_strides[d] * shape[d] &&
                         to_strides[d - 1] == to_strides[d] * shape[d];
    if (!one_run && shape[d - 1] != 1) continue;
    shape[d - 1] *= shape[d];
    from_strides[d - 1] = from_strides[d];
    to_strides[d - 1] = to_strides[d];
    for (Shape* list : {&shape, &from_strides, &to_strides})
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(d));
  }
}

// Copies all elements of `shape` from one strided place to another.
template <typename From, typename To>
void copy_strided(const Shape& shape, const From* from, const Shape& from_strides, To* to,
                  const Shape& to_strides) {
  const int64_t total = count(shape);
  if (total == 0) return;
  const size_t rank = shape.size();
  if (rank == 0) {
    *to = convert_one<To>(*from);
    return;
  }
  const int64_t inner = shape[rank - 1];
  Shape index(rank, 0);
  int64_t a = 0, b = 0;
  for (int64_t done = 0; done < total; done += inner) {
    convert_run(from + a, from_strides[rank - 1], to + b, to_strides[rank - 1], inner);
    for (size_t d = rank - 1; d-- > 0;) {
      a += from_strides[d];
      b += to_strides[d];
      if (++index[d] < shape[d]) break;
      a -= from_strides[d] * shape[d];
      b -= to_strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

void copy_any(Shape shape, ElementType from_type, const void* from, Shape from_strides,
              ElementType to_type, void* to, Shape to_strides) {
  const DefaultFloats floats;
  merge_runs(shape, from_strides, to_strides);
  with_type(from_type, [&](auto* f) {
    with_type(to_type, [&](auto* t) {
      copy_strided(shape, static_cast<std::remove_pointer_t<decltype(f)> const*>(from),
                   from_strides, static_cast<decltype(t)>(to), to_strides);
    });
  });
}

}  // namespace

Tensor Tensor::convert(ElementType type) const {
  Tensor result = allocate(type, shape_);
  if (type == type_) {
    if (bytes()) std::memcpy(result.raw_mutable(), data_, bytes());
    return result;
  }
  const Shape flat{elements()}, one{1};
  copy_any(flat, type_, data_, one, type, result.raw_mutable(), one);
  return result;
}

void Tensor::check_size(size_t bytes) const {
  if (bytes > size_of(type_) && !empty())
    throw Error(ErrorCode::unsupported, "it is given, or gives, values of type " +
                                            std::string(name_of(type_)) +
                                            ", which it cannot compute with");
}

std::vector<float> Tensor::to_floats() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  copy_any({elements()}, type_, data_, {1}, ElementType::f32, values.data(), {1});
  return values;
}

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> values(static_cast<size_t>(elements()));
  copy_any({elements()}, type_, data_, {1}, ElementType::i64, values.data(), {1});
  return values;
}

void scatter_to(const Tensor& from, const TensorDesc& desc, void* buffer) {
  auto* base =
      static_cast<std::byte*>(buffer) + desc.offset * static_cast<int64_t>(size_of(desc.type));
  copy_any(desc.shape, from.type(), from.raw(), row_major_strides(desc.shape), desc.type, base,
           desc.strides);
}

Tensor gather_from(const TensorDesc& desc, const void* buffer, ElementType type) {
  Tensor result = Tensor::allocate(type, desc.shape);
  auto* base = static_cast<const std::byte*>(buffer) +
               desc.offset * static_cast<int64_t>(size_of(desc.type));
  copy_any(desc.shape, desc.type, base, desc.strides, type, result.raw_mutable(),
           row_major_strides(desc.shape));
  return result;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // a NaN keeps its bits
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;     // rounds to 65536 or more
  if (magnitude < 0x38800000u) {                           // subnormal half: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

}  // namespace clinfer
