// Makes a convolution store maxima of its outputs instead of these, where a kernel does so: the outputs, which
// are several times as many, then need no memory. Maxima are taken before the tail, so each step of it
// must keep the order of numbers.
#include "engine/passes/passes.h"
#include "kernels/convolution/tiles/fused_convolution.h"

namespace clinfer {

void fuse_pools(Graph& graph, const PassContext& context) {
  for (const auto& node : graph.nodes()) {
    if (!node->is("MaxPool") || !node->tail.empty() || node->outputs.size() != 1) continue;
    const Edge summed = node->inputs[0];
    Node& convolution = *summed.node;
    if (!convolution.is("Convolution") || convolution.outputs.size() != 1 ||
        convolution.outputs[0].type != node->outputs[0].type || graph.use_count(summed) != 1)
      continue;
    Node pooled = as_fused_convolution(convolution);
    add_with_prefix(pooled.attributes, kPoolPrefix, node->attributes);
    pooled.outputs = node->outputs;
    const OpDesc desc = describe(pooled);
    if (!keeps_order(desc) || accepting_families(*pooled.def, desc, context.traits).empty())
      continue;
    convolution = pooled;
    graph.replace_uses({node.get(), 0}, summed);
    graph.disconnect(node.get());
  }
  graph.remove_dead();
}

}  // namespace clinfer
