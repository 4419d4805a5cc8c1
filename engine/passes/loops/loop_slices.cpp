// Brings the slices of a loop into the first dimension, and back.
#include "engine/passes/loops/loop_slices.h"

#include <algorithm>
#include <numeric>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

size_t axis_of(const Body::Port& port, const Shape& shape) {
  return static_cast<size_t>(port.axis < 0 ? port.axis + static_cast<int64_t>(shape.size())
                                           : port.axis);
}

// Returns whether all dimensions before the axis are 1, so that each part is one block already.
bool is_outermost(const Shape& shape, size_t axis) {
  return std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](int64_t size) { return size == 1; });
}

// Returns the shape with two dimensions for the axis: the index of the part, and the place in it.
Shape split(const Shape& whole, size_t axis, int64_t part) {
  Shape shape = whole;
  shape[axis] /= part;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, part);
  return shape;
}

Edge transposed(Graph& graph, Node* before, const Edge& edge, const std::vector<int64_t>& order) {
  Insertion add(graph, before, before->name + "/slices");
  return add.op("Transpose", 1, {edge, add.ints(order)});
}

}  // namespace

bool covers(const Body::Port& port, const Shape& whole, int64_t count) {
  const int64_t size = whole.at(axis_of(port, whole));
  const auto place = [&](int64_t v) { return v < 0 ? v + size + 1 : v; };
  return std::abs(port.stride) == port.part && size == count * port.part &&
         place(port.start) == (port.stride > 0 ? 0 : size) &&
         place(port.end) == (port.stride > 0 ? size : 0);
}

Edge before_reshapes(Edge edge) {
  while (reshapes(*edge.node)) edge = edge.node->inputs[0];
  return edge;
}

Edge reshaped(Graph& graph, Node* before, const Edge& edge, const Shape& shape) {
  if (edge.node->shape(edge.port) == shape) return edge;
  Insertion add(graph, before, before->name + "/slices");
  return add.op("Reshape", 1, {edge, add.ints(shape)}, {{"special_zero", "false"}});
}

Edge slices_first(Graph& graph, Node* before, const Edge& whole, const Body::Port& port) {
  const Shape shape = whole.node->shape(whole.port);
  const size_t axis = axis_of(port, shape);
  Shape parts = shape;
  parts[axis] = port.part;
  parts.insert(parts.begin(), shape[axis] / port.part);
  Edge from = whole;
  if (!is_outermost(shape, axis)) {
    std::vector<int64_t> order(shape.size() + 1);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(axis),
                order.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    from = transposed(graph, before, reshaped(graph, before, whole, split(shape, axis, port.part)),
                      order);
  }
  return reshaped(graph, before, from, parts);
}

Edge slices_joined(Graph& graph, Node* before, const Edge& parts, const Body::Port& port,
                   const Shape& shape) {
  const size_t axis = axis_of(port, shape);
  Edge from = parts;
  if (!is_outermost(shape, axis)) {
    std::vector<int64_t> order(shape.size() + 1);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::rotate(order.begin(), order.begin() + 1,
                order.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    from = transposed(graph, before, parts, order);
  }
  return reshaped(graph, before, from, shape);
}

}  // namespace clinfer
