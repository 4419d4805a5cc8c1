// Bounds checks, sub-byte unpacking and conversion of constants.
#include "engine/ir/weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/error.h"

namespace clinfer {

namespace {

// Regions that are converted may overlap in a hostile file; honest ones do not, and grow by at most
// the widest unpacking.
constexpr size_t kMostGrowth = 8;
constexpr size_t kFreeBytes = size_t{64} << 20;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::bad_model, what); }

// Elements of fewer than 8 bits begin at the low end of a byte (u1: the weights of
// BinaryConvolution, which alone takes them).
void unpack(const StoredType& type, const std::byte* from, int64_t elements, uint8_t* to) {
  for (int64_t i = 0; i < elements; ++i) {
    const auto byte = static_cast<unsigned>(from[i * type.bits / 8]);
    if (type.bits == 1) {
      to[i] = byte >> (i % 8) & 1;
    } else {
      const unsigned nibble = byte >> (i % 2 * 4) & 15;
      const bool negative = type.type == ElementType::i8 && nibble >= 8;
      to[i] = static_cast<uint8_t>(negative ? nibble | 0xf0 : nibble);
    }
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
  // Of an empty constant OpenVINO writes one byte.
  const int64_t needed = (bits + 7) / 8;
  if (needed != size && !(needed == 0 && size == 1))
    fail("a constant of shape " + to_string(shape) + " has " + std::to_string(needed) +
         " bytes, size says " + std::to_string(size));
  const auto available = static_cast<int64_t>(file_.bytes.size());
  if (offset < 0 || offset > available || size > available - offset)
    fail("its " + std::to_string(size) + " bytes at offset " + std::to_string(offset) + " leave " +
         file_.path + ", which has " + std::to_string(available) +
         " bytes (cut short, or the weights of another model)");
  if (needed == 0) return Tensor::allocate(type.in_graph, shape);

  const std::byte* data = file_.bytes.data() + offset;
  const bool aligned = reinterpret_cast<uintptr_t>(data) % size_of(type.type) == 0;
  if (type.bits >= 8 && type.type == type.in_graph && aligned)
    return Tensor::view(type.type, shape, data, file_.owner);
  const auto key = std::make_tuple(offset, count(shape), type.bits, type.type);
  if (const auto found = converted_.find(key); found != converted_.end())
    return found->second.reshaped(shape);
  converted_bytes_ += static_cast<size_t>(count(shape)) * size_of(type.in_graph);
  if (converted_bytes_ > kMostGrowth * file_.bytes.size() + kFreeBytes)
    fail("too many constants share their bytes in " + file_.path);
  return converted_.emplace(key, convert(type, shape, data)).first->second;
}

Tensor Weights::convert(const StoredType& type, const Shape& shape, const std::byte* data) {
  Tensor copy = Tensor::allocate(type.type, shape);
  if (type.bits < 8)
    unpack(type, data, copy.elements(), copy.mutable_data<uint8_t>());
  else
    std::memcpy(copy.raw_mutable(), data, copy.bytes());
  return type.type == type.in_graph ? copy : copy.convert(type.in_graph);
}

}  // namespace clinfer
