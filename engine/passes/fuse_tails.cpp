// Attaches element functions to the operation that produces their input, as long as one of its
// kernel families takes the longer tail. So one launch computes convolution + bias + activation +
// residual sum.
#include <algorithm>

#include "engine/passes/passes.h"

namespace clinfer {

namespace {

size_t position(const Graph& graph, const Node* node) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].get() == node) return i;
  return graph.nodes.size();
}

// Fuses `user` into the producer of its input `main`; false (nothing changed) where that cannot be.
bool fuse(Graph& graph, Node* user, int main, const PassContext& context) {
  const Edge x = user->inputs[main];
  Node* producer = x.node;
  if (!producer->def || producer->def->families.empty() || producer->def->view ||
      producer->outputs.size() != 1 || !is_float(producer->outputs[0].type) ||
      !is_float(user->outputs[0].type) || producer->shape() != user->shape() ||
      graph.users(x).size() != 1)
    return false;
  const OpDesc desc = describe(*user);
  TailSteps fused = user->def->as_tail(desc, main);
  if (fused.steps.empty()) return false;

  // The producer as it would be: its inputs, then the operands of the new steps in the order of
  // their use.
  Node candidate = *producer;
  if (candidate.tail.empty()) candidate.own_inputs = candidate.inputs.size();
  std::vector<std::pair<size_t, Tensor>> made;  // input number, value of a constant to insert
  for (PostOp step : fused.steps) {
    if (!step.is_unary()) {
      const size_t operand = static_cast<size_t>(step.operand);
      step.operand = static_cast<int>(candidate.inputs.size());
      if (operand < user->inputs.size()) {
        candidate.inputs.push_back(user->inputs[operand]);
      } else {
        made.emplace_back(candidate.inputs.size(),
                          fused.constants.at(operand - user->inputs.size()));
        candidate.inputs.push_back({});
      }
    }
    candidate.tail.push_back(step);
  }
  std::vector<std::unique_ptr<Node>> trial;
  for (auto& [index, value] : made) {
    auto constant = std::make_unique<Node>();
    constant->type = "Constant";
    constant->constant = value;
    constant->outputs = {{value.type(), value.shape(), {}, {}, {}}};
    candidate.inputs[index] = {constant.get(), 0};
    trial.push_back(std::move(constant));
  }
  if (accepting_families(*candidate.def, describe(candidate), context.traits).empty()) return false;

  for (auto& [index, value] : made)
    candidate.inputs[index] = {graph.insert_constant(user, user->name, value), 0};
  producer->inputs = candidate.inputs;
  producer->tail = candidate.tail;
  producer->own_inputs = candidate.own_inputs;
  producer->outputs[0].names = user->outputs[0].names;
  // The operands exist where the user stands, so the producer moves there; only the user needed it
  // before.
  const size_t from = position(graph, producer), to = position(graph, user);
  std::rotate(graph.nodes.begin() + static_cast<std::ptrdiff_t>(from),
              graph.nodes.begin() + static_cast<std::ptrdiff_t>(from) + 1,
              graph.nodes.begin() + static_cast<std::ptrdiff_t>(to) + 1);
  graph.replace_uses({user, 0}, {producer, 0});
  user->inputs.clear();  // it reads nothing any more, so the producer has the user's users only
  return true;
}

}  // namespace

void fuse_tails(Graph& graph, const PassContext& context) {
  std::vector<Node*> order;
  for (const auto& node : graph.nodes) order.push_back(node.get());
  for (Node* user : order) {
    if (!user->def || !user->def->as_tail || user->outputs.size() != 1 || !user->tail.empty())
      continue;
    // The later producer first: it has to wait for the other one in any case.
    std::vector<int> inputs;
    for (size_t i = 0; i < user->inputs.size(); ++i)
      if (!user->inputs[i].node->is("Constant")) inputs.push_back(static_cast<int>(i));
    std::sort(inputs.begin(), inputs.end(), [&](int a, int b) {
      return position(graph, user->inputs[a].node) > position(graph, user->inputs[b].node);
    });
    for (int main : inputs)
      if (fuse(graph, user, main, context)) break;
  }
  graph.remove_dead();
}

}  // namespace clinfer
