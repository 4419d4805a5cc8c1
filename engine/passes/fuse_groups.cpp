// A split, a convolution of each part and a concat of what they give are one grouped convolution,
// where the convolutions agree in all but their weights.
#include <algorithm>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

// One after the other along a new first dimension (weights) or along dimension 1 (biases
// [1,C,1,1]).
Tensor joined(const std::vector<const Tensor*>& parts, Shape shape) {
  Tensor all = Tensor::allocate(ElementType::f32, std::move(shape));
  float* to = all.mutable_data<float>();
  for (const Tensor* part : parts) {
    const std::vector<float> values = part->to_floats();
    to = std::copy(values.begin(), values.end(), to);
  }
  return all;
}

// What `add` adds to `x`: a constant with one number a channel, or nullptr.
const Tensor* bias_of(const Node& add, const Edge& x) {
  if (!add.is("Add") || add.inputs.size() != 2 || !add.tail.empty()) return nullptr;
  const Tensor* value = constant_value(add.inputs[add.inputs[0] == x ? 1 : 0]);
  Shape per_channel(x.node->shape().size(), 1);
  per_channel[1] = x.node->shape()[1];
  return value && is_float(value->type()) && value->shape() == per_channel ? value : nullptr;
}

void fuse(Graph& graph, Node* concat) {
  if (!concat->is("Concat")) return;
  const size_t groups = concat->inputs.size(), rank = concat->shape().size();
  if (groups < 2 || rank < 3 || rank > 5) return;
  const int64_t axis = concat->attributes.get_int("axis");
  if (axis != 1 && axis + static_cast<int64_t>(rank) != 1) return;
  std::vector<const Tensor*> weights, biases;
  const Node* split = nullptr;
  const Node* model = nullptr;
  for (size_t g = 0; g < groups; ++g) {
    Edge end = concat->inputs[g];
    if (only_user(graph, end) != concat) return;
    if (end.node->is("Add"))
      for (const Edge& input : end.node->inputs) {
        const Tensor* bias = input.node->is("Convolution") ? bias_of(*end.node, input) : nullptr;
        if (!bias || only_user(graph, input) != end.node) continue;
        biases.push_back(bias);
        end = input;
        break;
      }
    const Node& conv = *end.node;
    if (!conv.is("Convolution") || !conv.tail.empty()) return;
    const Tensor* filter = constant_value(conv.inputs[1]);
    const Edge& part = conv.inputs[0];
    if (!filter || !is_float(filter->type()) || part.port != static_cast<int>(g) ||
        only_user(graph, part) != &conv)
      return;
    if (g == 0) {
      split = part.node;
      model = &conv;
      if (!(split->is("Split") || split->is("VariadicSplit")) || split->outputs.size() != groups ||
          !constant_value(split->inputs[1]))
        return;
      const int64_t along = constant_value(split->inputs[1])->to_ints()[0];
      if (along != 1 && along + static_cast<int64_t>(rank) != 1) return;
    }
    if (part.node != split || conv.attributes.all() != model->attributes.all() ||
        (g > 0 && filter->shape() != weights[0]->shape()))
      return;
    weights.push_back(filter);
  }
  if (!biases.empty() && biases.size() != groups) return;

  Shape shape = weights[0]->shape();
  shape.insert(shape.begin(), static_cast<int64_t>(groups));
  Node* grouped = graph.insert(concat, "GroupConvolution", concat->name);
  grouped->def = find_op("GroupConvolution", 1);
  grouped->attributes = model->attributes;
  grouped->inputs = {split->inputs[0],
                     {graph.insert_constant(grouped, model->name, joined(weights, shape)), 0}};
  infer_node_shapes(*grouped);
  Node* last = grouped;
  if (!biases.empty()) {
    Shape channels(rank, 1);
    channels[1] = grouped->shape()[1];
    last = graph.insert(concat, "Add", concat->name);
    last->def = find_op("Add", 1);
    last->inputs = {{grouped, 0},
                    {graph.insert_constant(last, concat->name, joined(biases, channels)), 0}};
    infer_node_shapes(*last);
  }
  last->outputs[0].names = concat->outputs[0].names;
  graph.replace_uses({concat, 0}, {last, 0});
  concat->inputs.clear();
}

}  // namespace

void fuse_groups(Graph& graph, const PassContext&) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes) nodes.push_back(node.get());
  for (Node* node : nodes) fuse(graph, node);
  graph.remove_dead();
}

}  // namespace clinfer
