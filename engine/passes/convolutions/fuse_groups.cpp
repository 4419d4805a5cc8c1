// Replaces a split, a convolution of each part and a concat of the results by one grouped
// convolution, if the convolutions differ in nothing but their weights.
#include <algorithm>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

// Joins tensors along a new first dimension (weights) or along dimension 1 (biases [1,C,1,1]).
Tensor joined(const std::vector<const Tensor*>& parts, Shape shape) {
  Tensor all = Tensor::allocate(ElementType::f32, std::move(shape));
  float* to = all.mutable_data<float>();
  for (const Tensor* part : parts) {
    const std::vector<float> values = part->to_floats();
    to = std::copy(values.begin(), values.end(), to);
  }
  return all;
}

// Returns the constant that `add` adds to `x` if it has one number per channel, else nullptr.
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
    if (graph.only_user(end) != concat) return;
    if (end.node->is("Add"))
      for (const Edge& input : end.node->inputs) {
        const Tensor* bias = input.node->is("Convolution") ? bias_of(*end.node, input) : nullptr;
        if (!bias || graph.only_user(input) != end.node) continue;
        biases.push_back(bias);
        end = input;
        break;
      }
    const Node& conv = *end.node;
    if (!conv.is("Convolution") || !conv.tail.empty()) return;
    const Tensor* filter = constant_value(conv.inputs[1]);
    const Edge& part = conv.inputs[0];
    if (!filter || !is_float(filter->type()) || part.port != static_cast<int>(g) ||
        graph.only_user(part) != &conv)
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
  Insertion add(graph, concat);
  const Edge filters = Insertion(graph, concat, model->name).constant(joined(weights, shape));
  Edge result = add.op("GroupConvolution", 1, {split->inputs[0], filters}, model->attributes.all());
  if (!biases.empty()) {
    Shape channels(rank, 1);
    channels[1] = result.node->shape()[1];
    result = add.op("Add", 1, {result, add.constant(joined(biases, channels))});
  }
  result.node->outputs[0].names = concat->outputs[0].names;
  graph.replace_uses({concat, 0}, result);
  graph.disconnect(concat);
}

}  // namespace

void fuse_groups(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) fuse(graph, node);
  graph.remove_dead();
}

}  // namespace clinfer
