// Rounds layers' outputs as a device may have rounded them.
#include "engine/verify/rough.h"

#include <cmath>

namespace clinfer {

namespace {

// Largest errors of an element: relative to it, by the storage of activations; and relative to the
// tensor's typical value, by sums in another order, and of operands that were rounded.
struct Errors {
  double of_element, of_tensor;
};
Errors errors_of(Precision precision, bool quantised) {
  // A fraction of a step of 8 bits, so that some values take the next step, as after a device's own
  // rounding of scales and sums.
  if (quantised) return {0x1p-11, 0x1p-8};
  switch (precision) {
    case Precision::f16:
      return {0x1p-11, 0x1p-12};
    case Precision::bf16:
      return {0x1p-22, 0x1p-9};
    default:
      return {0x1p-22, 0x1p-21};
  }
}

}  // namespace

Roughness::Roughness(Precision precision, bool quantised, unsigned seed)
    : of_element_(errors_of(precision, quantised).of_element),
      of_tensor_(errors_of(precision, quantised).of_tensor),
      state_(seed * 2654435761u + 1) {}

float Roughness::next() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 17;
  state_ ^= state_ << 5;
  return static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31f;
}

Tensor Roughness::roughen(const Tensor& value) {
  if (value.type() != ElementType::f32) return value;
  const auto* from = value.data<float>();
  const auto elements = static_cast<size_t>(value.elements());
  double squares = 0;
  for (size_t i = 0; i < elements; ++i)
    if (std::isfinite(from[i])) squares += static_cast<double>(from[i]) * from[i];
  const auto typical =
      static_cast<float>(std::sqrt(squares / std::max<double>(static_cast<double>(elements), 1)));
  // A new tensor, since others may share the memory of this one.
  Tensor rough = Tensor::allocate(ElementType::f32, value.shape());
  auto* to = rough.mutable_data<float>();
  const auto of_element = static_cast<float>(of_element_);
  const float of_tensor = static_cast<float>(of_tensor_) * typical;
  // Leaves zeros alone, which activations and masks make exactly.
  for (size_t i = 0; i < elements; ++i)
    to[i] = from[i] == 0 ? 0 : from[i] + next() * (std::abs(from[i]) * of_element + of_tensor);
  return rough;
}

}  // namespace clinfer
