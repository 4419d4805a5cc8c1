// States: values that a network keeps from one inference to the next. In the graph a state is a
// Parameter, which gives the value before the inference, and a Result, which takes the value after
// it. Both follow the application's own inputs and outputs in Graph::parameters and
// Graph::results, and a request moves the value from one to the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace clinfer {

// Attribute of such a Parameter or Result: the name of the state.
inline constexpr const char* kState = "state";
// Attribute of a boolean Parameter without dimensions: the name of the state for which it says that
// the inference is the first one after a reset. The graph then computes the value itself.
inline constexpr const char* kStateIsNew = "state_is_new";

// Indices into Graph::parameters and Graph::results.
struct StatePlaces {
  std::string name;
  size_t parameter = 0;
  std::optional<size_t> result;  // none: inferences leave the value as it is
  std::optional<size_t> is_new;
};

// Returns the states in the order of their Parameters.
std::vector<StatePlaces> states_of(const Graph& graph);
// Returns whether a Parameter or Result belongs to a state and not to the application.
bool belongs_to_state(const Node& end);
bool has_states(const Graph& graph);

// Adds a state of this type and shape. Returns its value before the inference.
Edge add_state(Graph& graph, const std::string& name, ElementType type, const Shape& shape);
// Adds the input that says whether the state is new.
Edge add_is_new(Graph& graph, const std::string& name);
// Makes `value` the state's value after the inference. Throws Error{unsupported} if its shape is
// not the state's.
void set_next_value(Graph& graph, const std::string& name, const Edge& value);

}  // namespace clinfer
