// Lets operations that treat each row of channels by itself compute only the rows that a Gather
// chooses of their result. Detectors of queries (RT-DETR, D-FINE) compute boxes of all cells, of
// which 300 of some thousand go on.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

constexpr int64_t kFewer = 2;  // times as many rows as are chosen make it worth a move

// A Gather of rows: a list of places for each image, in the second dimension.
struct Choice {
  Edge data, places;
  int64_t rows, chosen;
};

bool choice_of(const Node& node, Choice& choice) {
  if (!node.is("Gather") || !node.tail.empty() || constant_value(node.inputs[1])) return false;
  const Tensor* axis = constant_value(node.inputs[2]);
  choice = {node.inputs[0], node.inputs[1], 0, 0};
  const Shape &data = shape_of(choice.data), &places = shape_of(choice.places);
  if (!axis || axis->to_ints()[0] != 1 || node.attributes.get_int("batch_dims", 0) != 1 ||
      data.size() != 3 || places.size() != 2)
    return false;
  choice.rows = data[1], choice.chosen = places[1];
  return choice.rows >= kFewer * choice.chosen;
}

bool is_function(const Node& node) {
  constexpr std::array<std::string_view, 7> kFunctions{"ReLU", "Gelu",   "Swish", "Sigmoid",
                                                       "Tanh", "HSwish", "Clamp"};
  return node.inputs.size() == 1 &&
         std::find(kFunctions.begin(), kFunctions.end(), node.type) != kFunctions.end();
}

// Returns the chosen rows of a constant that is added to or multiplied with all rows alike, or with
// each row by a list that all images share; nothing if it is neither.
std::optional<Edge> chosen_constant(Insertion& add, const Edge& edge, const Choice& choice) {
  Shape shape = shape_of(edge);
  if (shape.size() < 2 || shape[shape.size() - 2] == 1) {
    const bool one_image = shape.size() < 3 || shape[0] == 1;
    return one_image && shape.size() <= 3 ? std::optional(edge) : std::nullopt;
  }
  if (shape.size() > 3 || (shape.size() == 3 && shape[0] != 1)) return {};
  const Tensor list = constant_value(edge)->reshaped({shape[shape.size() - 2], shape.back()});
  return add.op("Gather", 8, {add.constant(list), choice.places, add.ints({0})},
                {{"batch_dims", "0"}});
}

// Returns the node's value at the chosen rows, from its operands at those; nothing if it is not
// computed row by row.
std::optional<Edge> at_rows(Insertion& add, const Node& node, const Choice& choice) {
  if (!node.def || !node.tail.empty()) return {};
  const auto gathered = [&](const Edge& edge) {
    return add.op("Gather", 8, {edge, choice.places, add.ints({1})}, {{"batch_dims", "1"}});
  };
  const auto like = [&](std::vector<Edge> inputs) {
    return add.op(node.type, node.opset, std::move(inputs), node.attributes.all());
  };
  if (is_function(node)) return like({gathered(node.inputs[0])});
  const auto keeps_rows = [&](const Edge& edge) {
    const Shape &from = shape_of(edge), &to = node.shape();
    return from.size() == to.size() && std::equal(from.begin(), from.end() - 1, to.begin());
  };
  if (node.is("MatMul")) {
    const Tensor* weights = constant_value(node.inputs[1]);
    if (!weights || weights->shape().size() != 2 || !keeps_rows(node.inputs[0]) ||
        node.attributes.get_bool("transpose_a", false))
      return {};
    return like({gathered(node.inputs[0]), node.inputs[1]});
  }
  if (node.is("CompressedMatMul")) {
    if (!keeps_rows(node.inputs[0])) return {};
    return like({gathered(node.inputs[0]), node.inputs[1], node.inputs[2], node.inputs[3]});
  }
  if (node.is("Add") || node.is("Multiply") || node.is("Subtract") || node.is("Divide"))
    for (const size_t side : {0, 1}) {
      const Edge &x = node.inputs[side], &other = node.inputs[1 - side];
      if (!constant_value(other) || shape_of(x) != node.shape()) continue;
      const auto constant = chosen_constant(add, other, choice);
      if (!constant) return {};
      const Edge rows = gathered(x);
      return side == 0 ? like({rows, *constant}) : like({*constant, rows});
    }
  return {};
}

// Returns an earlier Gather that chooses the same rows of the same tensor.
Node* same_choice(const Graph& graph, const Node* node, const Choice& choice) {
  for (Node* other : graph.users(choice.data)) {
    Choice theirs;
    if (other != node && choice_of(*other, theirs) && theirs.data == choice.data &&
        theirs.places == choice.places && graph.is_before(other, node))
      return other;
  }
  return nullptr;
}

}  // namespace

void choose_rows(Graph& graph, const PassContext&) {
  // A move puts a Gather in front of the operation, which may go on from there.
  std::vector<Node*> gathers;
  for (Node* node : nodes_of(graph))
    if (node->is("Gather")) gathers.push_back(node);
  while (!gathers.empty()) {
    Node* node = gathers.back();
    gathers.pop_back();
    Choice choice;
    if (!choice_of(*node, choice)) continue;
    if (Node* same = same_choice(graph, node, choice)) {
      graph.replace_uses({node, 0}, {same, 0});
      continue;
    }
    if (graph.use_count(choice.data) != 1) continue;
    Insertion add(graph, node);
    const auto moved = at_rows(add, *choice.data.node, choice);
    if (!moved) continue;
    moved->node->outputs[0].names = node->outputs[0].names;
    Node* whole = choice.data.node;
    graph.replace_uses({node, 0}, *moved);
    // Operands must not count them as readers any more.
    for (Node* dead : {node, whole}) graph.disconnect(dead);
    for (const Edge& input : moved->node->inputs)
      if (input.node->is("Gather")) gathers.push_back(input.node);
  }
  graph.remove_dead();
}

}  // namespace clinfer
