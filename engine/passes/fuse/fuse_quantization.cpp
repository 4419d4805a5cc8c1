// Makes a convolution quantise what it alone reads, where a kernel does so, such as the picture that a network
// takes: its bytes then need no memory.
#include "engine/passes/passes.h"
#include "kernels/convolution/tiles/fused_convolution.h"

namespace clinfer {

Node as_fused_convolution(const Node& convolution) {
  Node node = convolution;
  node.type = kFusedConvolution;
  node.opset = 1;
  node.def = find_op(node.type, node.opset);
  return node;
}

void fuse_quantization(Graph& graph, const PassContext& context) {
  for (const auto& node : graph.nodes()) {
    if (!(node->is("Convolution") || node->is(kFusedConvolution)) || node->outputs.size() != 1)
      continue;
    const Edge bytes = node->inputs[0];
    const Node& quantize = *bytes.node;
    if (!quantize.is("Quantize") || quantize.outputs[0].type != ElementType::u8 ||
        !quantize.tail.empty() || graph.use_count(bytes) != 1)
      continue;
    Node fused = as_fused_convolution(*node);
    add_with_prefix(fused.attributes, kQuantizePrefix, quantize.attributes);
    const size_t own = own_inputs(*node);
    std::vector<Edge> inputs = quantize.inputs;
    inputs.insert(inputs.begin() + 1, node->inputs[1]);
    inputs.insert(inputs.end(), node->inputs.begin() + static_cast<std::ptrdiff_t>(own),
                  node->inputs.end());
    fused.inputs = inputs;
    fused.own_inputs = own + 2;
    for (PostOp& op : fused.tail)
      if (!op.is_unary()) op.operand += 2;
    if (!accepting_families(*fused.def, describe(fused), context.traits).empty()) *node = fused;
  }
  graph.remove_dead();
}

}  // namespace clinfer
