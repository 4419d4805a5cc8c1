// Finds and adds the ends of a graph that belong to states.
#include "engine/graph/states.h"

#include <algorithm>

#include "engine/graph/insertion.h"

namespace clinfer {

namespace {

std::optional<size_t> find(const std::vector<Node*>& ends, const char* attribute,
                           const std::string& name) {
  for (size_t i = 0; i < ends.size(); ++i)
    if (ends[i]->attributes.has(attribute) && ends[i]->attributes.get_string(attribute) == name)
      return i;
  return std::nullopt;
}

Edge add_parameter(Graph& graph, const char* attribute, const std::string& name, ElementType type,
                   const Shape& shape) {
  const Node* const first = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  const Edge edge = Insertion(graph, first, name).parameter(type, shape);
  edge.node->attributes.set(attribute, name);
  return edge;
}

}  // namespace

std::vector<StatePlaces> states_of(const Graph& graph) {
  std::vector<StatePlaces> states;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    if (!graph.parameters[i]->attributes.has(kState)) continue;
    const std::string name = graph.parameters[i]->attributes.get_string(kState);
    states.push_back(
        {name, i, find(graph.results, kState, name), find(graph.parameters, kStateIsNew, name)});
  }
  return states;
}

bool belongs_to_state(const Node& end) {
  return end.attributes.has(kState) || end.attributes.has(kStateIsNew);
}

bool has_states(const Graph& graph) {
  return std::ranges::any_of(graph.parameters,
                             [](const Node* node) { return belongs_to_state(*node); });
}

Edge add_state(Graph& graph, const std::string& name, ElementType type, const Shape& shape) {
  return add_parameter(graph, kState, name, type, shape);
}

Edge add_is_new(Graph& graph, const std::string& name) {
  return add_parameter(graph, kStateIsNew, name, ElementType::boolean, {});
}

void set_next_value(Graph& graph, const std::string& name, const Edge& value) {
  const auto place = find(graph.parameters, kState, name);
  const NodeOutput& state = graph.parameters.at(place.value())->outputs[0];
  const NodeOutput& next = value.node->outputs[value.port];
  if (next.shape != state.shape)
    throw Error(ErrorCode::unsupported, "the state \"" + name + "\" is " + to_string(state.shape) +
                                            ", and an inference makes " + to_string(next.shape) +
                                            " of it; states whose size changes are not supported");
  Edge converted = value;
  if (next.type != state.type)
    converted =
        Insertion(graph, nullptr, name)
            .op("Convert", 1, {value}, {{"destination_type", std::string(name_of(state.type))}});
  Insertion(graph, nullptr, name).result(converted)->attributes.set(kState, name);
}

}  // namespace clinfer
