// Turns sliced inputs and outputs of a loop into tensors whose first dimension counts the
// iterations, so that each part is one block of memory.
#pragma once

#include <optional>

#include "engine/graph/insertion.h"

namespace clinfer {

// Returns whether the `count` parts together are the whole axis, from its begin or from its end on.
bool covers(const Body::Port& port, const Shape& whole, int64_t count);

// Returns [count, part's shape...] made from the whole. The port must cover the whole.
Edge slices_first(Graph& graph, Node* before, const Edge& whole, const Body::Port& port);

// Returns the whole, of shape `shape`, made from [count, part's shape...].
Edge slices_joined(Graph& graph, Node* before, const Edge& parts, const Body::Port& port,
                   const Shape& shape);

// Follows reshapes back to the edge whose elements this one has.
Edge before_reshapes(Edge edge);

// Changes the shape; the elements keep their order.
Edge reshaped(Graph& graph, Node* before, const Edge& edge, const Shape& shape);

}  // namespace clinfer
