// Computes values that do not depend on the network's inputs when the model is loaded (prior boxes,
// ShapeOf chains, converted weights). Values that would take far more memory or work than the
// model's size explains are left to the device: a few bytes of a file can ask for a broadcast to
// gigabytes, or for a chain of products.
#include <algorithm>
#include <unordered_set>

#include "engine/graph/evaluate.h"
#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

// Limit for all values computed here: kMostFoldedGrowth times the bytes of the model's constants,
// plus kFreeFoldedBytes.
constexpr size_t kMostFoldedGrowth = 8, kFreeFoldedBytes = size_t{64} << 20;
// Limits for multiplications: for each byte of the constants, and a fixed amount for models without
// large constants.
constexpr double kMostWork = 32, kFreeWork = 1 << 28;

size_t bytes_of_constants(const Graph& graph) {
  size_t bytes = 0;
  for (const auto& node : graph.nodes())
    if (node->is("Constant")) bytes += node->constant.bytes();
  return bytes;
}

// Returns the constant value of an edge. A tensor without elements counts as constant, so that
// kernels need not support it.
Tensor value_of(const Edge& edge) {
  const NodeOutput& output = edge.node->outputs[edge.port];
  const Tensor* constant = constant_value(edge);
  return constant                   ? *constant
         : count(output.shape) == 0 ? Tensor::allocate(output.type, output.shape)
                                    : Tensor();
}

// The bytes and the work that may still be spent.
struct Budget {
  size_t bytes;
  double work;  // multiplications
};

// Returns the node's outputs, if its inputs determine them and `left` suffices.
std::vector<Tensor> known_values(const Node& node, Budget& left) {
  if (!node.def || !node.def->evaluate || node.inputs.empty()) return {};
  if (node.is("ShapeOf")) return {shape_value(node)};
  std::vector<Tensor> inputs;
  for (const Edge& input : node.inputs) {
    inputs.push_back(value_of(input));
    if (inputs.back().empty()) return {};
  }
  try {
    // A reshaped constant shares its memory.
    if (reshapes(node) && inputs[0].elements() == count(node.shape()))
      return {inputs[0].reshaped(node.shape())};
    const double work = work_to_evaluate(node, inputs);
    if (bytes_to_evaluate(node, inputs) > left.bytes || work > left.work) return {};
    left.bytes -= bytes_of_outputs(node);
    left.work -= work;
    return evaluate_node(node, inputs);
  } catch (const Error& error) {
    if (!node.bodies.empty() && IterationLimit::passed()) return {};  // left to each inference
    throw Error(error.code(), label(node) + ": " + error.what(), error.place());
  }
}

}  // namespace

void fold_constants(Graph& graph, const PassContext&) {
  const size_t bytes = bytes_of_constants(graph);
  Budget left{kMostFoldedGrowth * bytes + kFreeFoldedBytes,
              kMostWork * static_cast<double>(bytes) + kFreeWork};
  IterationLimit limit(IterationLimit::kToSimplify);
  std::unordered_set<const Node*> dependent;
  for (Node* node : nodes_of(graph)) {
    if (depends_on_values(*node, dependent)) {
      dependent.insert(node);  // its shape is not known either
      continue;
    }
    const std::vector<Tensor> values = known_values(*node, left);
    for (size_t i = 0; i < values.size(); ++i) {
      const Edge output{node, static_cast<int>(i)};
      if (graph.use_count(output) == 0) continue;
      const Edge constant = Insertion(graph, node).constant(values[i]);
      constant.node->outputs[0].names = node->outputs[i].names;
      graph.replace_uses(output, constant);
    }
  }
  graph.remove_dead();
}

}  // namespace clinfer
