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

// An operand that is a Pad of zeros behind the channels is read without them.
void take_unpadded(Edge& operand, PostOp& step) {
  const Node& pad = *operand.node;
  if (!pad.is("Pad") || pad.attributes.get_string("pad_mode") != "constant") return;
  const Tensor *begin = constant_value(pad.inputs[1]), *end = constant_value(pad.inputs[2]);
  if (!begin || !end || pad.shape().size() < 3) return;
  std::vector<int64_t> pads = end->to_ints();
  if (pads[1] <= 0) return;
  pads[1] = 0;
  for (const int64_t front : begin->to_ints()) pads[0] |= front;
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; })) return;
  if (pad.inputs.size() > 3) {
    const Tensor* fill = constant_value(pad.inputs[3]);
    if (!fill || fill->elements() != 1 || fill->to_floats()[0] != 0) return;
  }
  if (pad.inputs[0].node->shape(pad.inputs[0].port)[1] < 2) return;  // one channel is broadcast
  step.padded = true;
  operand = pad.inputs[0];
}

// An operand that is a Dequantize is read as the bytes it is made of.
void take_bytes(Edge& operand, PostOp& step) {
  const Node& node = *operand.node;
  if (!node.is("Dequantize") || !node.tail.empty() ||
      constant_value(node.inputs[1])->elements() != 1)
    return;
  step.alpha = constant_value(node.inputs[1])->to_floats()[0];
  step.beta = constant_value(node.inputs[2])->to_floats()[0];
  operand = node.inputs[0];
}

// A tail that ends in multiply, add, to_byte as Quantize has put them there, with less to compute:
// no shift by 0, no limits that bytes have anyway, and the factor folded into constants further in
// front. `made`: values of constants to insert, by input.
void shorten(Node& node, std::vector<std::pair<size_t, Tensor>>& made) {
  const auto constant = [&](const PostOp& op) {
    return op.is_unary() ? nullptr : constant_value(node.inputs[op.operand]);
  };
  size_t factor = node.tail.size() - 3;  // place of the multiplication
  const std::vector<float> scale = constant(node.tail[factor])->to_floats(),
                           shift = constant(node.tail[factor + 1])->to_floats();
  const Shape scale_shape = constant(node.tail[factor])->shape();
  float low = 0, high = 0;  // the widest limits of all channels
  for (size_t c = 0; c < scale.size(); ++c) {
    const float from = -shift[c] / scale[c], to = (node.tail.back().beta - shift[c]) / scale[c];
    low = c == 0 ? from : std::min(low, from);
    high = c == 0 ? to : std::max(high, to);
  }
  const bool no_shift = std::all_of(shift.begin(), shift.end(), [](float s) { return s == 0; });
  if (no_shift) {
    node.tail.erase(node.tail.begin() + static_cast<std::ptrdiff_t>(factor) + 1);
    node.inputs.pop_back();
  }
  const auto limits_more = [&](const PostOp& op) {
    return op.function == "relu" ? low < 0
                                 : op.function != "clamp" || op.alpha > low || op.beta < high;
  };
  while (factor > 0 && !limits_more(node.tail[factor - 1])) {
    --factor;
    node.tail.erase(node.tail.begin() + static_cast<std::ptrdiff_t>(factor));
  }
  // f(x) * scale = f(x * scale) for a positive scale.
  const auto any_scale = [](const PostOp& op) {
    return op.function == "relu" || (op.function == "prelu" && !op.swapped);
  };
  std::vector<size_t> scaled;
  for (size_t i = factor; i-- > 0;) {
    const PostOp& op = node.tail[i];
    if (any_scale(op)) continue;
    const Tensor* value = constant(op);
    if (!no_shift || !value || !is_float(value->type()) ||
        (op.function != "add" && op.function != "multiply"))
      return;
    scaled.push_back(static_cast<size_t>(op.operand));
    if (op.function == "add") continue;
    for (size_t input : scaled) {
      const Tensor& old = *constant_value(node.inputs[input]);
      if (old.elements() != 1 && scale.size() != 1 && old.shape() != scale_shape) return;
    }
    for (size_t input : scaled) {
      const Tensor& old = *constant_value(node.inputs[input]);
      const std::vector<float> values = old.to_floats();
      std::vector<float> product(std::max(values.size(), scale.size()));
      for (size_t k = 0; k < product.size(); ++k)
        product[k] = values[values.size() == 1 ? 0 : k] * scale[scale.size() == 1 ? 0 : k];
      made.emplace_back(input, Tensor::of(ElementType::f32,
                                          values.size() == 1 ? scale_shape : old.shape(), product));
    }
    node.tail.erase(node.tail.begin() + static_cast<std::ptrdiff_t>(factor));
    node.inputs.pop_back();
    return;
  }
}

// Fuses `user` into the producer of its input `main`; false (nothing changed) where that cannot be.
bool fuse(Graph& graph, Node* user, int main, const PassContext& context) {
  const Edge x = user->inputs[main];
  Node* producer = x.node;
  if (!producer->def || producer->def->families.empty() || producer->def->view ||
      producer->outputs.size() != 1 || !is_float(producer->outputs[0].type) ||
      !(is_float(user->outputs[0].type) || user->is("Quantize")) ||
      producer->shape() != user->shape() || graph.users(x).size() != 1)
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
        take_unpadded(candidate.inputs.back(), step);
        take_bytes(candidate.inputs.back(), step);
      } else {
        made.emplace_back(candidate.inputs.size(),
                          fused.constants.at(operand - user->inputs.size()));
        candidate.inputs.push_back({});
      }
    }
    candidate.tail.push_back(step);
  }
  candidate.outputs[0].type = user->outputs[0].type;
  if (user->is("Quantize")) shorten(candidate, made);
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
  producer->outputs[0].type = candidate.outputs[0].type;
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
    // The later producer first: it has to wait for the other one in any case. Last those that only
    // convert: their bytes can be an operand.
    std::vector<int> inputs;
    for (size_t i = 0; i < user->inputs.size(); ++i)
      if (!user->inputs[i].node->is("Constant")) inputs.push_back(static_cast<int>(i));
    std::sort(inputs.begin(), inputs.end(), [&](int a, int b) {
      const Node *first = user->inputs[a].node, *second = user->inputs[b].node;
      if (first->is("Dequantize") != second->is("Dequantize")) return second->is("Dequantize");
      return position(graph, first) > position(graph, second);
    });
    for (int main : inputs)
      if (fuse(graph, user, main, context)) break;
  }
  graph.remove_dead();
}

}  // namespace clinfer
