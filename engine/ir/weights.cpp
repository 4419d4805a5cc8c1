// Checks bounds, unpacks elements of fewer than 8 bits, and converts constants.
#include "engine/ir/weights.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/packed_bits.h"

namespace clinfer {

namespace {

// Limits the memory of constants: regions may overlap in a hostile file. Honest ones do not, and
// grow by at most the widest unpacking.
constexpr size_t kMostReadGrowth = 8;
constexpr size_t kFreeReadBytes = size_t{64} << 20;

[[noreturn]] void fail(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_model, what, place);
}

// The values of NormalFloat 4: quantiles of the normal distribution, scaled to -1..1 (Dettmers and
// others, "QLoRA", 2023, appendix E).
constexpr float kNormalFloat4[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f,
                                     -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
                                     0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                     0.44070983f,  0.56261700f,  0.72295684f,  1.0f};

// Unpacks elements of fewer than 8 bits, which begin at the low end of a byte. Only
// BinaryConvolution uses u1, for its weights.
void unpack(const StoredType& type, const std::byte* from, Tensor& to) {
  const int64_t elements = to.elements();
  if (type.type == ElementType::f32) {
    auto* floats = to.mutable_data<float>();
    for (int64_t i = 0; i < elements; ++i) floats[i] = kNormalFloat4[bits_at(from, i, 4)];
    return;
  }
  auto* bytes = to.mutable_data<uint8_t>();
  for (int64_t i = 0; i < elements; ++i) {
    const unsigned value = bits_at(from, i, type.bits);
    const bool negative = type.type == ElementType::i8 && value >> (type.bits - 1) != 0;
    bytes[i] = static_cast<uint8_t>(negative ? value | ~0U << type.bits : value);
  }
}

}  // namespace

Tensor Weights::read(const StoredType& type, const Shape& shape, int64_t offset, int64_t size) {
  int64_t bits = type.bits;
  bool too_large = false;
  for (int64_t dim : shape) {
    if (dim < 0) fail("a constant needs a fixed shape, not " + to_string(shape));
    too_large |= __builtin_mul_overflow(bits, dim, &bits);
  }
  if (too_large || bits > INT64_MAX - 7) fail("its shape " + to_string(shape) + " is too large");
  // OpenVINO writes one byte for an empty constant.
  const int64_t needed = (bits + 7) / 8;
  if (needed != size && !(needed == 0 && size == 1))
    fail("a constant of shape " + to_string(shape) + " has " + std::to_string(needed) +
         " bytes, size says " + std::to_string(size));
  const auto available = static_cast<int64_t>(file_.size);
  if (offset < 0 || offset > available || size > available - offset)
    fail("its " + std::to_string(size) + " bytes at offset " + std::to_string(offset) + " leave " +
         file_.path + ", which has " + std::to_string(available) +
         " bytes (cut short, or the weights of another model)");
  if (needed == 0) return Tensor::allocate(type.in_graph, shape);

  const auto key = std::make_tuple(offset, count(shape), type.bits, type.type, type.float8);
  if (const auto found = read_.find(key); found != read_.end())
    return found->second.reshaped(shape);
  read_bytes_ += static_cast<size_t>(count(shape)) * size_of(type.in_graph);
  if (read_bytes_ > kMostReadGrowth * file_.size + kFreeReadBytes)
    fail("too many constants share their bytes in " + file_.path);
  return read_
      .emplace(key, convert(type, shape, static_cast<size_t>(offset), static_cast<size_t>(needed)))
      .first->second;
}

Tensor Weights::convert(const StoredType& type, const Shape& shape, size_t offset,
                        size_t size) const {
  Tensor copy = Tensor::allocate(type.type, shape);
  if (type.bits < 8) {
    std::vector<std::byte> packed(size);
    file_.read(offset, packed);
    unpack(type, packed.data(), copy);
  } else {
    file_.read(offset, {static_cast<std::byte*>(copy.raw_mutable()), size});
  }
  if (type.float8) return from_float8(copy, *type.float8);
  return type.type == type.in_graph ? copy : copy.convert(type.in_graph);
}

Tensor from_float8(const Tensor& bytes, const Float8Format& format) {
  Tensor wide = Tensor::allocate(ElementType::f32, bytes.shape());
  const auto* from = bytes.data<uint8_t>();
  std::transform(from, from + bytes.elements(), wide.mutable_data<float>(),
                 [&](uint8_t bits) { return float8_value(bits, format); });
  return wide;
}

}  // namespace clinfer
