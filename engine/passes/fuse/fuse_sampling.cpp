// Replaces deformable attention, weighted sums of samples of several maps, by one operation, which stores
// no samples. Exporters join the samples of the maps, [images * heads, channels, queries, points], by
//   Concat along the points
//   Unsqueeze, Concat along a new dimension of maps, and a Reshape of both (torch.stack and flatten)
//   nothing, if there is one map
// then multiply them by weights, which all channels share, and add up the points (ReduceSum). A Reshape that
// divides images from heads tells how many heads there are.
#include "engine/passes/fuse/fuse_sampling.h"

#include <optional>

#include "engine/graph/insertion.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

bool is_plain(const Graph& graph, const Edge& edge) {
  return edge.node->def && edge.node->tail.empty() && graph.use_count(edge) == 1;
}

// Returns whether the node joins its inputs along this dimension.
bool joins(const Node& node, size_t dimension) {
  const size_t rank = node.shape().size();
  return node.is("Concat") && rank > dimension &&
         checked_axis(node.attributes.get_int("axis"), rank, "axis") == dimension;
}

bool starts_equal(const Shape& a, const Shape& b, size_t dimensions) {
  return a.size() >= dimensions && b.size() >= dimensions &&
         std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(dimensions), b.begin());
}

// Returns the GridSamples whose samples `edge` has, in the order of its points; none if it has others.
std::vector<const Node*> samples_of(const Graph& graph, const Edge& edge) {
  if (!is_plain(graph, edge) || edge.node->shape().size() != 4) return {};
  const Node& node = *edge.node;
  if (node.is("GridSample")) return {&node};
  const Node* joined = &node;
  if (reshapes(node)) {
    joined = node.inputs[0].node;
    if (!is_plain(graph, node.inputs[0]) || !joins(*joined, 3) || joined->shape().size() != 5 ||
        !starts_equal(joined->shape(), node.shape(), 3))
      return {};
  } else if (!joins(node, 3)) {
    return {};
  }
  std::vector<const Node*> samples;
  for (Edge part : joined->inputs) {
    if (joined != &node) {
      // [.., queries, 1, points] of [.., queries, points].
      const Shape& shape = shape_of(part);
      if (!is_plain(graph, part) || !reshapes(*part.node) || shape[3] != 1) return {};
      part = part.node->inputs[0];
      if (shape_of(part).size() != 4 || !starts_equal(shape_of(part), shape, 3)) return {};
    }
    if (!is_plain(graph, part) || !part.node->is("GridSample")) return {};
    samples.push_back(part.node);
  }
  return samples;
}

struct FoundSampling {
  std::vector<const Node*> samples;
  Edge weights;
  Node* last = nullptr;  // its output is replaced: the sum, or a reshape after it
  int64_t batch = 0;     // images; what else the first dimension has is heads
};

std::optional<FoundSampling> sampling_at(const Graph& graph, Node& sum) {
  if (!sum.is("ReduceSum") || !sum.def || !sum.tail.empty() || sum.inputs.size() != 2) return {};
  const Shape& shape = shape_of(sum.inputs[0]);
  const Tensor* axes = constant_value(sum.inputs[1]);
  if (shape.size() != 4 || !axes || axes->elements() != 1 ||
      checked_axis(axes->to_ints()[0], 4, "axis") != 3)
    return {};
  const Node& product = *sum.inputs[0].node;
  if (!is_plain(graph, sum.inputs[0]) || !product.is("Multiply")) return {};
  FoundSampling found;
  for (const size_t side : {0, 1}) {
    found.weights = product.inputs[1 - side];
    if (shape_of(product.inputs[side]) != shape ||
        shape_of(found.weights) != Shape{shape[0], 1, shape[2], shape[3]})
      continue;
    found.samples = samples_of(graph, product.inputs[side]);
    if (!found.samples.empty()) break;
  }
  if (found.samples.empty()) return {};
  for (const Node* sample : found.samples)
    if (sample->attributes.all() != found.samples[0]->attributes.all()) return {};

  found.last = &sum;
  found.batch = shape[0];
  Node* reader = graph.only_user({&sum, 0});
  if (reader && reshapes(*reader) && reader->tail.empty()) {
    const Shape& divided = reader->shape();
    if (divided.size() == 3 && divided[0] > 0 && shape[0] % divided[0] == 0 &&
        divided[2] == shape[2]) {
      found.last = reader;
      found.batch = divided[0];
    }
  }
  return found;
}

// Reshapes an edge. If it is a reshape already, reads that one's input, because views of views
// might need a copy.
Edge input_as(Insertion& add, Edge edge, const Shape& shape) {
  if (reshapes(*edge.node)) edge = edge.node->inputs[0];
  if (shape_of(edge) == shape) return edge;
  return add.op("Reshape", 1, {edge, add.ints(shape)}, {{"special_zero", "false"}});
}

void fuse(Graph& graph, const PassContext& context, Node& sum, const FoundSampling& found) {
  Insertion add(graph, &sum);
  const int64_t n = found.batch, heads = shape_of(sum.inputs[0])[0] / n;
  std::vector<Edge> maps, grids;
  for (const Node* sample : found.samples) {
    const Shape &map = shape_of(sample->inputs[0]), &grid = shape_of(sample->inputs[1]);
    const Edge divided = input_as(add, sample->inputs[0], {n, heads, map[1], map[2], map[3]});
    maps.push_back(add.op("Transpose", 1, {divided, add.ints({0, 1, 3, 4, 2})}));
    grids.push_back(input_as(add, sample->inputs[1], {n, heads, grid[1], grid[2], grid[3]}));
  }
  std::vector<Edge> inputs = maps;
  inputs.insert(inputs.end(), grids.begin(), grids.end());
  const Shape& weights = shape_of(found.weights);
  inputs.push_back(input_as(add, found.weights, {n, heads, weights[2], weights[3]}));
  const auto& stated = found.samples[0]->attributes.all();
  Edge made = add.op("DeformableAttention", 1, inputs, {stated.begin(), stated.end()});
  // Describes the operands as row-major: assign_layouts copies those that the kernel cannot read.
  OpDesc desc = describe(*made.node);
  for (TensorDesc& input : desc.inputs) input = TensorDesc::row_major(input.type, input.shape);
  if (accepting_families(*made.node->def, desc, context.traits).empty()) return;
  made.node->computes = sum.computes;
  made = add.op("Transpose", 1, {made, add.ints({0, 2, 3, 1})});
  made = add.op("Reshape", 1, {made, add.ints(found.last->shape())}, {{"special_zero", "false"}});
  made.node->outputs[0].names = found.last->outputs[0].names;
  graph.replace_uses({found.last, 0}, made);
  graph.disconnect(found.last);
}

}  // namespace

void fuse_sampling(Graph& graph, const PassContext& context) {
  for (Node* node : nodes_of(graph))
    if (const auto found = sampling_at(graph, *node)) fuse(graph, context, *node, *found);
}

}  // namespace clinfer
