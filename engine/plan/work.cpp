// How much an operation computes, roughly.
#include "engine/plan/work.h"

#include <algorithm>

namespace clinfer {

double multiply_adds(const OpDesc& desc) {
  if (desc.outputs.empty() || desc.inputs.size() < 2) return 0;
  const Shape& out = desc.outputs[0].shape;
  const auto elements = static_cast<double>(desc.outputs[0].elements());
  if (desc.constants.size() > 1 && !desc.constants[1].empty())  // each serves one channel
    return out.size() < 2 ? 0
                          : elements * static_cast<double>(desc.constants[1].elements()) /
                                static_cast<double>(std::max<int64_t>(out[1], 1));
  const Shape& left = desc.inputs[0].shape;
  if (desc.type != "MatMul" || left.empty()) return 0;
  const bool transposed = left.size() > 1 && desc.attributes.get_bool("transpose_a", false);
  return elements * static_cast<double>(left[left.size() - (transposed ? 2 : 1)]);
}

}  // namespace clinfer
