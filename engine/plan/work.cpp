// Estimates roughly how much an operation computes.
#include "engine/plan/work.h"

#include <algorithm>

namespace clinfer {

double multiply_adds(const OpDesc& desc) {
  if (desc.outputs.empty() || desc.inputs.size() < 2) return 0;
  const auto elements = static_cast<double>(desc.outputs[0].elements());
  const Shape& left = desc.inputs[0].shape;
  if (desc.type == "MatMul") {
    if (left.empty()) return 0;
    const bool transposed = left.size() > 1 && desc.attributes.get_bool("transpose_a", false);
    return elements * static_cast<double>(left[left.size() - (transposed ? 2 : 1)]);
  }
  if (desc.type == "CompressedMatMul") return elements * static_cast<double>(left.back());
  if (desc.type == "Attention") {  // each query is multiplied with each key and each value
    const Shape& key = desc.inputs[1].shape;
    return elements * static_cast<double>(key[key.size() - 2]) *
           (1 + static_cast<double>(left.back()) /
                    static_cast<double>(std::max<int64_t>(desc.outputs[0].shape.back(), 1)));
  }
  const Shape& out = desc.outputs[0].shape;
  if (desc.constants.size() < 2 || desc.constants[1].empty() || out.size() < 2) return 0;
  // Each weight of a convolution is used for one channel.
  return elements * static_cast<double>(desc.constants[1].elements()) /
         static_cast<double>(std::max<int64_t>(out[1], 1));
}

}  // namespace clinfer
