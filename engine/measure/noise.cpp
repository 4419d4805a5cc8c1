// Tensors of noise.
#include "engine/measure/noise.h"

namespace clinfer {

Tensor synthetic_tensor(const Port& port) {
  Noise noise;
  const bool image = port.shape.size() == 4 || port.shape.size() == 5;
  std::vector<float> values(static_cast<size_t>(count(port.shape)));
  const bool fraction = !image && is_float(port.type);
  for (float& value : values) {
    if (fraction)
      value = static_cast<float>(noise.next()) / 255;
    else if (image && port.type != ElementType::boolean)
      value = static_cast<float>(noise.next() >> (port.type == ElementType::i8));
    else
      value = 1;
  }
  return Tensor::of(port.type, port.shape, values);
}

void set_noise(InferRequest& request, const std::vector<Port>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) request.set_input(i, synthetic_tensor(inputs[i]));
}

}  // namespace clinfer
