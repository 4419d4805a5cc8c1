// Removes operations whose output is their input: conversions to the same type, reshapes to the
// same shape, identity transposes, concats of one tensor, tiles by one, pads and summands of 0,
// factors of 1. Merges chains of reshapes and of transposes, so that the layout of a tensor in the
// middle does not matter. Drops outputs that nothing reads from operations that can do without
// them.
#include <algorithm>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

std::vector<int64_t> order_of(const Node& transpose) {
  std::vector<int64_t> order = constant_value(transpose.inputs[1])->to_ints();
  const size_t rank = transpose.shape().size();
  if (order.empty())  // no order given means: reversed
    for (size_t d = rank; d-- > 0;) order.push_back(static_cast<int64_t>(d));
  for (int64_t& d : order) d = static_cast<int64_t>(checked_axis(d, rank, "order entry"));
  return order;
}

// Returns whether the node is a transpose that moves only dimensions of size 1.
bool moves_nothing(const Node& node) {
  if (!node.is("Transpose") || !constant_value(node.inputs[1])) return false;
  const Shape& shape = node.inputs[0].node->shape(node.inputs[0].port);
  std::vector<int64_t> moved = order_of(node);
  std::erase_if(moved, [&](int64_t d) { return shape[static_cast<size_t>(d)] == 1; });
  return std::is_sorted(moved.begin(), moved.end());
}

void set_second_input(Graph& graph, Node& node, const std::vector<int64_t>& values) {
  node.inputs = {node.inputs[0], Insertion(graph, &node).ints(values)};
}

void merge(Graph& graph, Node& node) {
  const auto become_reshape = [&] {
    const Shape shape = node.shape();
    node.type = "Reshape";
    node.opset = 1;
    node.def = find_op("Reshape", 1);
    node.attributes = {};
    set_second_input(graph, node, shape);
  };
  if (moves_nothing(node)) become_reshape();
  if (node.inputs.empty()) return;
  const Node& before = *node.inputs[0].node;
  if (reshapes(node) && reshapes(before)) {
    become_reshape();
    node.inputs.set(0, before.inputs[0]);
  } else if (node.is("Transpose") && before.is("Transpose") && constant_value(node.inputs[1]) &&
             constant_value(before.inputs[1])) {
    const std::vector<int64_t> first = order_of(before);
    std::vector<int64_t> order = order_of(node);
    for (int64_t& d : order) d = first[static_cast<size_t>(d)];
    node.inputs.set(0, before.inputs[0]);
    set_second_input(graph, node, order);
  }
}

// Returns the input that passes unchanged: x * 1, x / 1, x + 0, x - 0.
std::optional<size_t> unchanged_input(const Node& node) {
  const bool multiplies = node.is("Multiply"), adds = node.is("Add");
  if (!multiplies && !adds && !node.is("Divide") && !node.is("Subtract")) return {};
  if (node.inputs.size() != 2 || !node.tail.empty() || !is_float(node.outputs[0].type)) return {};
  const float neutral = multiplies || node.is("Divide") ? 1.f : 0.f;
  for (const size_t side : {size_t{1}, size_t{0}}) {
    if (side == 0 && !multiplies && !adds) break;
    const Tensor* constant = constant_value(node.inputs[side]);
    if (!constant || constant->type() != ElementType::f32 || constant->elements() == 0) continue;
    const Edge& x = node.inputs[1 - side];
    if (x.node->shape(x.port) != node.shape() ||
        x.node->outputs[x.port].type != node.outputs[0].type)
      continue;
    const auto* values = constant->data<float>();
    if (std::all_of(values, values + constant->elements(),
                    [neutral](float v) { return v == neutral; }))
      return 1 - side;
  }
  return {};
}

// Returns whether all pads are 0: exporters compute pads from a size, which may come out so.
bool pads_nothing(const Node& node) {
  for (const size_t side : {size_t{1}, size_t{2}}) {
    const Tensor* pads = side < node.inputs.size() ? constant_value(node.inputs[side]) : nullptr;
    if (!pads) return false;
    for (const int64_t pad : pads->to_ints())
      if (pad != 0) return false;
  }
  return true;
}

bool tiles_once(const Node& node) {
  const Tensor* repeats = constant_value(node.inputs[1]);
  if (!repeats) return false;
  const std::vector<int64_t> times = repeats->to_ints();
  return std::all_of(times.begin(), times.end(), [](int64_t n) { return n == 1; });
}

bool is_identity(const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const NodeOutput& in = node.inputs[0].node->outputs[node.inputs[0].port];
  const NodeOutput& out = node.outputs[0];
  if (in.type != out.type || in.shape != out.shape) return false;
  if (node.is("Convert") || node.is("ConvertLike") || reshapes(node)) return true;
  if (node.is("Concat")) return node.inputs.size() == 1;
  if (node.is("Pad")) return pads_nothing(node);
  if (node.is("Tile")) return tiles_once(node);
  if (node.is("Transpose")) {
    if (!constant_value(node.inputs[1])) return false;
    const std::vector<int64_t> order = order_of(node);
    return std::is_sorted(order.begin(), order.end());
  }
  return false;
}

// Drops outputs that nothing reads, such as the indices of a MaxPool, if the shapes of the others
// do not change.
void drop_unread_outputs(const Graph& graph, Node& node) {
  while (node.def && node.outputs.size() > 1 &&
         graph.use_count({&node, static_cast<int>(node.outputs.size()) - 1}) == 0) {
    Node trial = node;
    trial.outputs.pop_back();
    try {
      infer_node_shapes(trial);
    } catch (const Error&) {
      return;
    }
    if (trial.outputs.size() == node.outputs.size()) return;
    node.outputs.pop_back();
  }
}

}  // namespace

void simplify(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    merge(graph, *node);
    if (is_identity(*node))
      graph.replace_uses({node, 0}, node->inputs[0]);
    else if (const auto input = unchanged_input(*node))
      graph.replace_uses({node, 0}, node->inputs[*input]);
  }
  graph.remove_dead();
  for (const auto& node : graph.nodes()) drop_unread_outputs(graph, *node);
}

}  // namespace clinfer
