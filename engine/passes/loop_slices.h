// The sliced inputs and outputs of a loop as tensors whose first dimension counts the iterations, so that each part
// is one block of memory.
#pragma once

#include <optional>

#include "engine/graph/insertion.h"

namespace clinfer {

// Returns whether the parts are all of the axis, one after the other from its begin or its end,
// `count` of them.
bool covers(const Body::Port& port, const Shape& whole, int64_t count);

// [count, part's shape...] from the whole. The port covers it.
Edge slices_first(Graph& graph, Node* before, const Edge& whole, const Body::Port& port);

// The whole of shape `shape` from [count, part's shape...].
Edge slices_joined(Graph& graph, Node* before, const Edge& parts, const Body::Port& port,
                   const Shape& shape);

// The edge whose elements this one has in another shape.
Edge before_reshapes(Edge edge);

// Changes the shape; the elements keep their order.
Edge reshaped(Graph& graph, Node* before, const Edge& edge, const Shape& shape);

}  // namespace clinfer
