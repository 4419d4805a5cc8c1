// Decides what tensors are stored in: floats as the device computes best, 64-bit integers as 32
// bits, booleans as bytes. Constants keep their values; only the type in which a kernel would see
// them changes.
#include "engine/passes/passes.h"

namespace clinfer {

void set_precision(Graph& graph, const PassContext& context) {
  for (const auto& node : graph.nodes)
    for (NodeOutput& output : node->outputs) {
      if (is_float(output.type))
        output.type = context.activations;
      else if (output.type == ElementType::boolean)
        output.type = ElementType::u8;
      else if (size_of(output.type) == 8 || output.type == ElementType::u32 ||
               size_of(output.type) == 2)
        output.type = ElementType::i32;
    }
}

}  // namespace clinfer
