// Fills tensors with noise.
#include "engine/measure/noise.h"

namespace clinfer {

Tensor noise_tensor(ElementType type, const Shape& shape) {
  Noise noise;
  std::vector<float> values(static_cast<size_t>(count(shape)), 1);
  if (is_float(type))
    for (float& value : values) value = static_cast<float>(noise.next()) / 255;
  return Tensor::of(type, shape, values);
}

Tensor synthetic_tensor(const Port& port) {
  const bool image = port.shape.size() == 4 || port.shape.size() == 5;
  if (!image || port.type == ElementType::boolean) return noise_tensor(port.type, port.shape);
  Noise noise;
  std::vector<float> values(static_cast<size_t>(count(port.shape)));
  for (float& value : values)
    value = static_cast<float>(noise.next() >> (port.type == ElementType::i8));
  return Tensor::of(port.type, port.shape, values);
}

void set_noise(InferRequest& request, const std::vector<Port>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) request.set_input(i, synthetic_tensor(inputs[i]));
}

}  // namespace clinfer
