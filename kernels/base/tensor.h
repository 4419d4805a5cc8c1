// Element types, shapes, strided tensor descriptions and host tensors, which all layers use.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clinfer {

// f8e4m3 (float8.h) is a type of stored values only: kernels and the host compute in f32 with it.
enum class ElementType : uint8_t {
  f32,
  f16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  f8e4m3
};

size_t size_of(ElementType type);            // in bytes
std::string_view name_of(ElementType type);  // "f32", ... as in IR's element_type
bool is_float(ElementType type);             // f32, f16 or f64
// Returns whether quantised activations are stored in this type: u8 or f8e4m3.
bool is_quantized(ElementType type);

// Dimensions in the IR's order ([N, C, H, W] for images). A scalar is the empty shape.
using Shape = std::vector<int64_t>;

int64_t count(const Shape& shape);            // 1 for a scalar
std::string to_string(const Shape& shape);    // "[1,3,300,300]"
Shape row_major_strides(const Shape& shape);  // in elements, innermost dimension last
// Strides of a dense tensor whose channel dimension (1) is innermost in memory: [N,W,C], [N,H,W,C],
// [N,D,H,W,C] for rank 3 to 5; row-major for any other rank.
Shape channels_last_strides(const Shape& shape);

// The location of a tensor's elements in a buffer: element [i0, i1, ...] is at
// offset + i0 * strides[0] + i1 * strides[1] + ... (in elements). Views (crop, channel slice of a
// concat, transpose) differ only in shape, strides and offset.
struct TensorDesc {
  ElementType type = ElementType::f32;
  Shape shape;
  Shape strides;
  int64_t offset = 0;

  static TensorDesc row_major(ElementType type, Shape shape);
  static TensorDesc channels_last(ElementType type, Shape shape);

  int64_t elements() const { return count(shape); }
  int64_t span() const;  // elements from the first to the last one; 0 if empty
  // Returns the offsets of the first byte and of the one after the last, from the start of the
  // buffer. Not for empty tensors.
  std::pair<int64_t, int64_t> byte_range() const;
  // Returns whether the tensor is dense with the innermost dimension last; strides of dimensions of
  // size 1 are ignored.
  bool is_row_major() const;
  // Returns whether the tensor is dense with channels_last_strides(); strides of dimensions of size
  // 1 are ignored.
  bool is_channels_last() const;
  // Returns whether some permutation of the dimensions is dense, without gaps and overlaps.
  bool is_dense() const;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

// A tensor in host memory, always dense and row-major. Copies share the data (reference-counted);
// it must not be changed once another holder has a copy.
class Tensor {
 public:
  Tensor() = default;
  static Tensor allocate(ElementType type, Shape shape);  // zeroed
  // Views `data` (aligned for `type`), which `owner` keeps alive.
  static Tensor view(ElementType type, Shape shape, const void* data,
                     std::shared_ptr<const void> owner);
  template <typename T>
  static Tensor of(ElementType type, Shape shape, const std::vector<T>& values);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return count(shape_); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(type_); }
  bool empty() const { return data_ == nullptr; }  // true if there is no tensor

  const void* raw() const { return data_; }
  // The memory must come from allocate(), and no other holder may share it.
  void* raw_mutable() { return const_cast<void*>(data_); }
  // Returns the elements as T. Throws Error{unsupported} if they are smaller than T, so that an
  // operation that does not check its types cannot access memory beyond them.
  template <typename T>
  const T* data() const {
    check_size(sizeof(T));
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    check_size(sizeof(T));
    return static_cast<T*>(raw_mutable());
  }

  std::vector<float> to_floats() const;  // for any element type
  std::vector<int64_t> to_ints() const;  // for any element type; truncates floats
  // Converts as the Convert operation does: truncates floats to integers. The result has memory of
  // its own, with the same type as well.
  Tensor convert(ElementType type) const;
  Tensor reshaped(Shape shape) const;  // shares the memory

 private:
  void check_size(size_t bytes) const;

  ElementType type_ = ElementType::f32;
  Shape shape_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Conversions of IEEE 754 binary16, with subnormals, infinities and NaN.
uint16_t float_to_half(float value);  // round to nearest even
// Inline and without branches, so that compilers vectorise loops over it.
inline float half_to_float(uint16_t bits) {
  constexpr uint32_t kBias = 112u << 23;  // difference of the formats' exponent biases
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  // A subnormal has no implicit leading one. Adds it, then subtracts its value.
  const float subnormal = std::bit_cast<float>(magnitude + kBias + (1u << 23)) - 0x1p-14f;
  const uint32_t is_normal = 0u - static_cast<uint32_t>(magnitude >= 0x00800000u),
                 has_end = 0u - static_cast<uint32_t>(magnitude < 0x0f800000u);
  const uint32_t finite =
      (is_normal & (magnitude + kBias)) | (~is_normal & std::bit_cast<uint32_t>(subnormal));
  return std::bit_cast<float>(((bits & 0x8000u) << 16) | (has_end & finite) |
                              (~has_end & (magnitude | 0x7f800000u)));
}

// Copy between row-major host elements and the strided elements of `desc` in `buffer` (its base,
// without the offset), and convert the element type.
void scatter_to(const Tensor& from, const TensorDesc& desc, void* buffer);
Tensor gather_from(const TensorDesc& desc, const void* buffer, ElementType type);

template <typename T>
Tensor Tensor::of(ElementType type, Shape shape, const std::vector<T>& values) {
  constexpr ElementType from =
      sizeof(T) == 8              ? (static_cast<T>(0.5) != 0 ? ElementType::f64 : ElementType::i64)
      : static_cast<T>(0.5) != 0  ? ElementType::f32
      : sizeof(T) == 4            ? ElementType::i32
      : static_cast<T>(-1) < T{0} ? ElementType::i8
                                  : ElementType::u8;
  static_assert(sizeof(T) != 2, "16-bit sources are not used");
  Tensor view = Tensor::view(from, std::move(shape), values.data(), nullptr);
  return view.convert(type);
}

}  // namespace clinfer
