// Runs nodes and whole graphs on the host with the operations' plain C++: oracle of the tests,
// constant folder.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

// Outputs of one node, its tail included, from the values of all its inputs. Floats are f32,
// integers as the node states them. After an operation whose output's size depends on values
// (`sizes_vary`), the outputs' shapes follow from the inputs given: these have other shapes than
// were inferred or, computed from those, other values. Throws what the operation throws,
// Error{unsupported} where it has no host version.
std::vector<Tensor> evaluate_node(const Node& node, std::span<const Tensor> inputs,
                                  bool sizes_vary = false);

// Bytes of host memory that evaluate_node() takes for the outputs and, where the operation is a
// combination of others, for what these give. Shapes are to be inferred before.
size_t bytes_to_evaluate(const Node& node, std::span<const Tensor> inputs);
// About how many multiplications evaluate_node() takes; those of bodies count by themselves
// (IterationLimit).
double work_to_evaluate(const Node& node, std::span<const Tensor> inputs);

// Types and shapes of the inputs of the operation itself, and the values of those that are
// Constants.
std::vector<ValueInfo> known_inputs(const Node& node);
// The value of a ShapeOf. It needs the inferred shape of the input, not its value.
Tensor shape_value(const Node& node);
// Types, shapes and known values of the Results, in their order. A value is known where constants,
// shapes and the values of `parameters` determine it. Shapes must be inferred before.
std::vector<ValueInfo> known_results(const Graph& graph, std::span<const ValueInfo> parameters);

// The engine calls this with each node that has been computed, and its outputs.
using NodeWatcher = std::function<void(const Node&, std::span<const Tensor>)>;

// Values of the Results in their order, from values of the Parameters in theirs (element types are
// converted; the shapes must be the Parameters', else Error{bad_argument}). Errors name the layer.
std::vector<Tensor> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs,
                                   const NodeWatcher& watch = {});

}  // namespace clinfer
