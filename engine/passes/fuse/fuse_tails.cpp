// Fuses element functions into the operation that produces their input, as long as one of its
// kernel families accepts the longer tail: one launch computes convolution + bias + activation +
// residual sum. If other operations read that input too, the producer also stores it as a second
// output, and can fuse that output's only reader.
#include <algorithm>
#include <cmath>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

// Limits the time of fusing, which grows with the tail's length. Real networks have far shorter
// tails.
constexpr size_t kLongestTail = 64;

// Reads the operand of a Pad that adds zeros after the channels, instead of the Pad's output.
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

// Reads the bytes of a Dequantize instead of its floats.
void take_bytes(Edge& operand, PostOp& step) {
  const Node& node = *operand.node;
  if (!node.is("Dequantize") || !node.tail.empty() ||
      constant_value(node.inputs[1])->elements() != 1)
    return;
  step.alpha = constant_value(node.inputs[1])->to_floats()[0];
  step.beta = constant_value(node.inputs[2])->to_floats()[0];
  operand = node.inputs[0];
}

// The constants of a candidate node, which are added to the graph if the candidate is accepted.
using Constants = std::vector<std::unique_ptr<Node>>;

Edge make_constant(Tensor value, Constants& made) {
  auto constant = std::make_unique<Node>();
  constant->type = "Constant";
  constant->outputs = {{value.type(), value.shape(), {}, {}, {}}};
  constant->constant = std::move(value);
  made.push_back(std::move(constant));
  return {made.back().get(), 0};
}

const Tensor* constant_operand(const Node& node, const PostOp& op) {
  return op.is_unary() ? nullptr : constant_value(node.inputs[op.operand]);
}

// Shortens a tail that ends in multiply, add, to_byte as Quantize makes it: drops a shift by 0 and
// limits that bytes have anyway, and folds the factor into earlier constants.
void shorten(Node& node, Constants& made) {
  const auto constant = [&](const PostOp& op) { return constant_operand(node, op); };
  size_t factor = node.tail.size() - 3;  // the multiplication's position
  const std::vector<float> scale = constant(node.tail[factor])->to_floats(),
                           shift = constant(node.tail[factor + 1])->to_floats();
  const Shape scale_shape = constant(node.tail[factor])->shape();
  float low = 0, high = 0;  // the widest limits of all channels
  for (size_t c = 0; c < scale.size(); ++c) {
    const float from = (node.tail.back().alpha - shift[c]) / scale[c],
                to = (node.tail.back().beta - shift[c]) / scale[c];
    low = c == 0 ? from : std::min(low, from);
    high = c == 0 ? to : std::max(high, to);
  }
  const bool no_shift = std::all_of(shift.begin(), shift.end(), [](float s) { return s == 0; });
  if (no_shift) node.tail.erase(node.tail.begin() + static_cast<std::ptrdiff_t>(factor) + 1);
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
      node.inputs.set(
          input, make_constant(Tensor::of(ElementType::f32,
                                          values.size() == 1 ? scale_shape : old.shape(), product),
                               made));
    }
    node.tail.erase(node.tail.begin() + static_cast<std::ptrdiff_t>(factor));
    return;
  }
}

// Merges successive multiplications by constants and additions of constants into one of each.
void merge_linear(Node& node, Constants& made) {
  const auto operand = [&](const PostOp& op) -> const Tensor* {
    const Tensor* value = constant_operand(node, op);
    const bool linear = op.function == "multiply" || op.function == "add";
    return linear && value && is_float(value->type()) && value->elements() > 0 ? value : nullptr;
  };
  std::vector<PostOp> merged;
  for (size_t from = 0; from < node.tail.size();) {
    // x * factor + shift; both have `shape` or a single element
    std::vector<float> factor{1}, shift{0};
    Shape shape;
    size_t to = from;
    for (; to < node.tail.size(); ++to) {
      const Tensor* value = operand(node.tail[to]);
      if (!value) break;
      if (value->elements() != 1 && count(shape) != 1 && value->shape() != shape) break;
      if (value->elements() != 1 || count(shape) == 1) shape = value->shape();
      const std::vector<float> by = value->to_floats();
      const size_t size = static_cast<size_t>(count(shape));
      factor.resize(size, factor[0]);
      shift.resize(size, shift[0]);
      const bool multiplies = node.tail[to].function == "multiply";
      for (size_t i = 0; i < size; ++i) {
        const float y = by[by.size() == 1 ? 0 : i];
        if (multiplies) factor[i] *= y;
        shift[i] = multiplies ? shift[i] * y : shift[i] + y;
      }
    }
    const size_t steps = to - from;
    const auto differs = [](const std::vector<float>& values, float neutral) {
      return std::any_of(values.begin(), values.end(), [&](float v) { return v != neutral; });
    };
    const auto finite = [](const std::vector<float>& values) {
      return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    };
    const bool scales = differs(factor, 1), shifts = differs(shift, 0);
    if (steps > size_t{scales} + size_t{shifts} && finite(factor) && finite(shift)) {
      const auto step = [&](const char* function, std::vector<float> values) {
        PostOp op{function};
        op.operand = static_cast<int>(node.inputs.size());
        const bool single = !differs(values, values[0]);
        if (single) values.resize(1);
        node.inputs.push_back(
            make_constant(Tensor::of(ElementType::f32, single ? Shape{} : shape, values), made));
        merged.push_back(op);
      };
      if (scales) step("multiply", factor);
      if (shifts) step("add", shift);
    } else {
      to = std::max(to, from + 1);
      merged.insert(merged.end(), node.tail.begin() + static_cast<std::ptrdiff_t>(from),
                    node.tail.begin() + static_cast<std::ptrdiff_t>(to));
    }
    from = to;
  }
  node.tail = std::move(merged);
}

// Lists the operands in the order of their use, and drops all others.
void order_operands(Node& node) {
  std::vector<Edge> inputs(node.inputs.begin(),
                           node.inputs.begin() + static_cast<std::ptrdiff_t>(node.own_inputs));
  for (PostOp& op : node.tail) {
    if (op.is_unary()) continue;
    inputs.push_back(node.inputs[op.operand]);
    op.operand = static_cast<int>(inputs.size()) - 1;
  }
  node.inputs = std::move(inputs);
}

bool computes_with_constants(const Node& node, int main) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (static_cast<int>(i) != main && !node.inputs[i].node->is("Constant")) return false;
  return true;
}

std::vector<PostOp>::iterator find_step(std::string_view function, std::vector<PostOp>& tail) {
  return std::find_if(tail.begin(), tail.end(),
                      [&](const PostOp& op) { return op.function == function; });
}

bool among(const Node& node, const Edge& input) {
  return std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end();
}

// Fuses `user` into the producer of its input `main`. Returns false, without a change, if that is
// impossible.
bool fuse(Graph& graph, Node* user, int main, const PassContext& context) {
  const Edge x = user->inputs[main];
  Node* producer = x.node;
  const bool keeps_one = keeps(producer->tail), branch = keeps_one && x.port == 1;
  if (!producer->def || producer->def->families.empty() || producer->def->view ||
      (x.port != 0 && !branch) || (producer->outputs.size() != 1 && !keeps_one) ||
      !is_float(producer->outputs[x.port].type) ||
      !(is_float(user->outputs[0].type) || (user->is("Quantize") && !branch)) ||
      producer->shape() != user->shape())
    return false;
  // If others read the value too, the producer stays at its position, where no operands but
  // constants are available.
  const bool others = graph.use_count(x) != 1, stays = others || keeps_one;
  if ((others && keeps_one) || (stays && !computes_with_constants(*user, main))) return false;
  const OpDesc desc = describe(*user);
  TailSteps fused = user->def->as_tail(desc, main);
  if (fused.steps.empty() || producer->tail.size() + fused.steps.size() > kLongestTail)
    return false;

  // Builds the producer as it would be: its inputs, then the operands of the new steps in the order
  // of their use.
  Node candidate = *producer;
  if (candidate.tail.empty()) candidate.own_inputs = candidate.inputs.size();
  Constants made;
  if (others) {
    candidate.tail.push_back({"keep"});
    candidate.outputs.push_back(candidate.outputs[0]);
  }
  auto end = candidate.tail.end();
  if (branch) {
    const auto keep = find_step("keep", candidate.tail);
    end =
        find_step("fork", candidate.tail) < keep ? keep : candidate.tail.insert(keep, {"fork"}) + 1;
  }
  for (PostOp step : fused.steps) {
    if (!step.is_unary()) {
      const size_t operand = static_cast<size_t>(step.operand);
      step.operand = static_cast<int>(candidate.inputs.size());
      if (operand < user->inputs.size()) {
        Edge read = user->inputs[operand];
        take_unpadded(read, step);
        take_bytes(read, step);
        candidate.inputs.push_back(read);
      } else {
        candidate.inputs.push_back(
            make_constant(fused.constants.at(operand - user->inputs.size()), made));
      }
    }
    end = candidate.tail.insert(end, step) + 1;
  }
  candidate.outputs[x.port].type = user->outputs[0].type;
  if (user->is("Quantize")) shorten(candidate, made);
  merge_linear(candidate, made);
  order_operands(candidate);
  if (accepting_families(*candidate.def, describe(candidate), context.traits).empty()) return false;

  const auto is_new = [&](const Edge& input) {
    const auto is_made = [&](const auto& constant) { return input.node == constant.get(); };
    return std::any_of(made.begin(), made.end(), is_made) ||
           (stays && input.node->is("Constant") && !among(*producer, input));
  };
  Insertion add(graph, stays ? producer : user, user->name);
  for (size_t i = 0; i < candidate.inputs.size(); ++i)
    if (const Edge& input = candidate.inputs[i]; is_new(input))
      candidate.inputs.set(i, add.constant(input.node->constant));
  producer->inputs = candidate.inputs;
  producer->tail = candidate.tail;
  producer->own_inputs = candidate.own_inputs;
  producer->outputs = candidate.outputs;
  producer->outputs[x.port].names = user->outputs[0].names;
  if (others) graph.replace_uses({producer, 0}, {producer, 1});
  // Moves the producer to the user's position, where the operands exist. No other node needed it
  // before.
  if (!stays) graph.move_after(producer, user);
  graph.replace_uses({user, 0}, {producer, x.port});
  graph.disconnect(user);
  return true;
}

// Rewrites a FakeQuantize that no kernel took as a product with a tail, which the element kernel
// computes in fewer instructions.
void spell_out(Graph& graph, Node& node, const PassContext& context) {
  OpDesc desc = describe(node);
  desc.outputs[0].type = ElementType::f32;  // needed for a tail that makes bytes
  const TailSteps steps = node.def->as_tail(desc, 0);
  if (steps.steps.empty()) return;
  Node product = node;
  product.type = "Multiply";
  product.def = find_op("Multiply", 1);
  product.attributes = {};
  product.own_inputs = 2;
  product.inputs = {node.inputs[0]};
  product.tail.clear();
  const auto take = [&](PostOp step, const Edge& operand) {
    if (!step.is_unary()) {
      step.operand = static_cast<int>(product.inputs.size());
      product.inputs.push_back(operand);
    }
    product.tail.push_back(step);
  };
  const bool scaled = steps.steps[0].function == "multiply";
  Insertion add(graph, &node);
  if (!scaled) product.inputs.push_back(add.floats({}, {1}));
  const auto constant_of = [&](const PostOp& step) -> const Tensor& {
    return steps.constants.at(static_cast<size_t>(step.operand) - node.inputs.size());
  };
  for (const PostOp& step : steps.steps)
    take(step, step.is_unary() ? Edge{} : add.constant(constant_of(step)));
  if (scaled) product.tail.erase(product.tail.begin());  // the product computes this step itself
  for (const PostOp& step : node.tail)
    take(step, step.is_unary() ? Edge{} : node.inputs[step.operand]);
  if (!accepting_families(*product.def, describe(product), context.traits).empty())
    node = std::move(product);
}

}  // namespace

void fuse_tails(Graph& graph, const PassContext& context) {
  const std::vector<Node*> order = nodes_of(graph);
  for (Node* user : order) {
    if (!user->def || !user->def->as_tail || user->outputs.size() != 1 || !user->tail.empty())
      continue;
    // Tries the later producer first, because it has to wait for the other one in any case, and
    // operations that only convert last: their bytes can be operands.
    std::vector<int> inputs;
    for (size_t i = 0; i < user->inputs.size(); ++i)
      if (!user->inputs[i].node->is("Constant")) inputs.push_back(static_cast<int>(i));
    std::sort(inputs.begin(), inputs.end(), [&](int a, int b) {
      const Node *first = user->inputs[a].node, *second = user->inputs[b].node;
      if (first->is("Dequantize") != second->is("Dequantize")) return second->is("Dequantize");
      return graph.is_before(second, first);
    });
    for (int main : inputs)
      if (fuse(graph, user, main, context)) break;
  }
  for (Node* node : order)
    if (node->is("FakeQuantize") && !node->inputs.empty()) spell_out(graph, *node, context);
  graph.remove_dead();
}

}  // namespace clinfer
