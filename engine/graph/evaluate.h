// Runs nodes and whole graphs on the host by the operations' plain C++ versions. Serves as the
// oracle of tests and for folding constants.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

// Computes the outputs of one node, including its tail, from the values of all its inputs. Floats
// are f32, integers have the node's types. With `sizes_vary`, as after an operation whose output's
// size depends on values, the shapes of outputs are inferred from the given inputs, whose shapes or
// values may differ from those inferred before. Throws the operation's errors, and
// Error{unsupported} if it has no host version.
std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor> inputs,
                                  bool sizes_vary = false);

// Returns how many bytes of host memory evaluate_node() takes for the outputs and, if the operation
// is a combination of others, for their outputs. Shapes must be inferred before.
size_t bytes_to_evaluate(const Node& node, std::span<const Tensor> inputs);
// Returns roughly how many multiplications evaluate_node() takes, without those of bodies, which
// IterationLimit counts.
double work_to_evaluate(const Node& node, std::span<const Tensor> inputs);

// Returns types and shapes of the operation's own inputs, and the values of those that are
// Constants.
std::vector<ValueInfo> known_inputs(const Node& node);
// Returns the value of a ShapeOf. It needs the inferred shape of the input, not its value.
Tensor shape_value(const Node& node);
// Returns types, shapes and known values of the Results, in their order. A value is known if
// constants, shapes and the values of `parameters` determine it. Shapes must be inferred before.
std::vector<ValueInfo> known_results(const Graph& graph, std::span<const ValueInfo> parameters);

// The engine calls this with each node that has been computed, and its outputs.
using NodeWatcher = std::function<void(const Node&, std::span<const Tensor>)>;

// Returns the values of the Results in their order, from the values of the Parameters in theirs.
// Converts element types; throws Error{bad_argument} for shapes other than the Parameters'. Errors
// name the layer.
std::vector<Tensor> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs,
                                   const NodeWatcher& watch = {});

}  // namespace clinfer
