// Moves element functions with single constants (activations, factors) from after reshapes,
// transposes, crops, concats and splits to the operations that compute the values, which then apply
// them before they store. After a split, either all parts must have the same function, or the part
// must be made by some operations before a concat alone, as YOLOv8's scores are.
#include <algorithm>
#include <memory>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"

namespace clinfer {

namespace {

constexpr int kDeepest = 16;         // views and concats in a row
constexpr size_t kMostPlaces = 64;   // operations that may have to compute one function
constexpr size_t kMostParts = 1024;  // of a split, which each function behind it counts

// Returns the input to which the function is applied; nullopt if another operand is no single
// constant, or if the type changes.
std::optional<size_t> main_input(const Node& node) {
  if (!node.def || !node.def->as_tail || node.outputs.size() != 1 || !node.tail.empty() ||
      !is_float(node.outputs[0].type) || node.is("FakeQuantize") || node.is("Quantize") ||
      node.is("Dequantize") || node.is("Convert"))
    return {};
  std::optional<size_t> main;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor* constant = constant_value(node.inputs[i]);
    if (constant && constant->elements() == 1 && is_float(constant->type())) continue;
    if (constant || main) return {};
    main = i;
  }
  if (!main) return {};
  const Edge& in = node.inputs[*main];
  return is_float(in.node->outputs[in.port].type) && in.node->shape(in.port) == node.shape() &&
                 !in.node->shape(in.port).empty()
             ? main
             : std::nullopt;
}

bool only_moves(const Node& node) {
  return reshapes(node) || node.is("Transpose") || node.is("Slice") || node.is("StridedSlice");
}

bool splits(const Node& node) { return node.is("Split") || node.is("VariadicSplit"); }

// Returns whether two nodes with a main_input() compute the same function.
bool is_same_function(const Node& a, const Node& b) {
  if (a.type != b.type || a.opset != b.opset || a.attributes.all() != b.attributes.all() ||
      a.inputs.size() != b.inputs.size())
    return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const Tensor *x = constant_value(a.inputs[i]), *y = constant_value(b.inputs[i]);
    if ((x == nullptr) != (y == nullptr) || (x && x->to_floats() != y->to_floats())) return false;
  }
  return true;
}

// Inserts the function as a node right after `x`. The first such node counts as the layer.
Edge apply(Graph& graph, Node& function, size_t main, const Edge& x) {
  Node twin = function;
  function.computes.clear();
  std::vector<Edge> inputs = function.inputs;
  inputs[main] = x;
  Insertion add(graph, graph.next(x.node), function.name);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != main) inputs[i] = add.constant(function.inputs[i].node->constant.reshaped(Shape{1}));
  twin.inputs = std::move(inputs);
  twin.outputs[0] = NodeOutput{x.node->outputs[x.port].type, x.node->shape(x.port), {}, {}, {}};
  return {add.copy(twin), 0};
}

// Returns whether a kernel of `producer` computes the function as well.
bool accepts(const Node& producer, const Node& function, size_t main, const PassContext& context) {
  if (!producer.def || producer.def->families.empty() || producer.def->view ||
      producer.outputs.size() != 1)
    return false;
  const TailSteps steps = function.def->as_tail(describe(function), static_cast<int>(main));
  if (steps.steps.empty()) return false;
  Node candidate = producer;
  if (candidate.tail.empty()) candidate.own_inputs = candidate.inputs.size();
  std::vector<std::unique_ptr<Node>> constants;
  for (PostOp step : steps.steps) {
    if (!step.is_unary()) {
      const auto operand = static_cast<size_t>(step.operand);
      const Tensor& value = operand < function.inputs.size()
                                ? function.inputs[operand].node->constant
                                : steps.constants.at(operand - function.inputs.size());
      if (value.elements() != 1) return false;
      auto& constant = *constants.emplace_back(std::make_unique<Node>());
      constant.type = "Constant";
      constant.constant = value.reshaped(Shape{1});
      constant.outputs = {{value.type(), Shape{1}, {}, {}, {}}};
      step.operand = static_cast<int>(candidate.inputs.size());
      candidate.inputs.push_back({&constant, 0});
    }
    candidate.tail.push_back(step);
  }
  return !accepting_families(*candidate.def, describe(candidate), context.traits).empty();
}

class Move {
 public:
  Move(Graph& graph, Node* function, size_t main, const PassContext& context)
      : graph_(graph), function_(function), main_(main), context_(context) {}

  void run() {
    const Edge from = function_->inputs[main_];
    if (splits(*from.node) && run_past_split(*from.node)) return;
    places_.clear();
    if (!only_moves(*from.node) && !from.node->is("Concat") && !splits(*from.node)) return;
    if (!find(from, 0, {})) return;
    place();
    remove(*function_, from);
  }

 private:
  // The elements from `begin` to `end` - 1 along an axis, to which alone the function is applied.
  struct Part {
    size_t axis = 0;
    int64_t begin = 0, end = 0;
  };

  bool run_past_split(Node& split) {
    if (split.outputs.size() > kMostParts) return false;
    // Lets the function of the first part that is read stand for all, since comparing each with all
    // others would take quadratic time.
    for (int part = 0; part < function_->inputs[main_].port; ++part)
      if (graph_.use_count({&split, part}) != 0) return false;
    std::vector<Node*> functions;
    for (Node* user : graph_.users(&split)) {
      const auto main = main_input(*user);
      if (!main || !is_same_function(*user, *function_)) return false;
      if (graph_.use_count(user->inputs[*main]) != 1) return false;
      functions.push_back(user);
    }
    if (!find_input(split, 0, 0, {})) return false;
    for (Node* other : functions)
      if (other != function_)
        function_->computes.insert(function_->computes.end(), other->computes.begin(),
                                   other->computes.end());
    place();
    for (Node* function : functions) remove(*function, function->inputs[*main_input(*function)]);
    return true;
  }

  void place() {
    for (const auto& [reader, input] : places_)
      reader->inputs.set(input, apply(graph_, *function_, main_, reader->inputs[input]));
  }

  void remove(Node& function, const Edge& from) {
    from.node->outputs[from.port].names = function.outputs[0].names;
    graph_.replace_uses({&function, 0}, from);
    graph_.disconnect(&function);
  }

  // Finds the operations that make `edge`, or the part of it, and have to compute the function.
  // Returns false if one of them cannot.
  bool find(const Edge& edge, int depth, const std::optional<Part>& part) {
    Node& node = *edge.node;
    if (depth > kDeepest || places_.size() > kMostPlaces) return false;
    if (graph_.use_count(edge) != 1 || !node.tail.empty()) return false;
    if (splits(node)) {
      if (node.outputs.size() > kMostParts) return false;
      const auto whole = part_of_split(edge, part);
      return whole && graph_.use_count(node.inputs[0]) == 1 && find_input(node, 0, depth, whole);
    }
    if (node.outputs.size() != 1) return false;
    if (node.is("Concat")) return find_joined(node, depth, part);
    if (!part) return find_input(node, 0, depth, {});
    const auto before = part_before(node, *part);
    return before && find_input(node, 0, depth, before);
  }

  bool find_input(Node& node, size_t i, int depth, const std::optional<Part>& part) {
    const Edge from = node.inputs[i];
    if (only_moves(*from.node) || from.node->is("Concat") || (part && splits(*from.node)))
      return find(from, depth + 1, part);
    if (part || graph_.use_count(from) != 1 || !accepts(*from.node, *function_, main_, context_))
      return false;
    places_.emplace_back(&node, i);
    return true;
  }

  // Finds the inputs of a concat that make the part. None of them may reach beyond it, unless it is
  // the only one.
  bool find_joined(Node& concat, int depth, const std::optional<Part>& part) {
    const size_t axis = axis_of(concat, concat.attributes.get_int("axis"));
    const bool along = part && part->axis == axis;
    if (part && concat.inputs.size() > kMostPlaces) return false;
    int64_t begin = 0;
    for (size_t i = 0; i < concat.inputs.size(); ++i) {
      const int64_t end = begin + concat.inputs[i].node->shape(concat.inputs[i].port)[axis];
      std::optional<Part> inside = part;
      if (along) {
        if (part->begin <= begin && end <= part->end)
          inside = std::nullopt;
        else if (begin <= part->begin && part->end <= end)
          inside = Part{axis, part->begin - begin, part->end - begin};
        else if (begin < part->end && part->begin < end)
          return false;
      }
      const bool reads = !along || (begin < part->end && part->begin < end);
      if (reads && !find_input(concat, i, depth, inside)) return false;
      begin = end;
    }
    return true;
  }

  static size_t axis_of(const Node& node, int64_t axis) {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(node.shape().size()) : axis);
  }

  // Returns the part of the split's input that corresponds to one of its outputs, or to a part of
  // that output.
  static std::optional<Part> part_of_split(const Edge& edge, const std::optional<Part>& part) {
    const Node& split = *edge.node;
    const Tensor* along = constant_value(split.inputs[1]);
    if (!along || along->elements() != 1) return {};
    const size_t axis = axis_of(split, along->to_ints()[0]);
    if (part && part->axis != axis) return {};
    int64_t begin = 0;
    for (int port = 0; port < edge.port; ++port) begin += split.shape(port)[axis];
    if (part) return Part{axis, begin + part->begin, begin + part->end};
    return Part{axis, begin, begin + split.shape(edge.port)[axis]};
  }

  // Returns the part of the node's input that makes this part; nothing if that is in several
  // pieces.
  static std::optional<Part> part_before(const Node& node, const Part& part) {
    const Shape &from = node.inputs[0].node->shape(node.inputs[0].port), &to = node.shape();
    if (!reshapes(node) || from.size() <= part.axis ||
        !std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(part.axis) + 1,
                    from.begin()))
      return {};
    return part;
  }

  Graph& graph_;
  Node* const function_;
  const size_t main_;
  const PassContext& context_;
  std::vector<std::pair<Node*, size_t>> places_;
};

}  // namespace

void move_functions(Graph& graph, const PassContext& context) {
  for (Node* node : nodes_of(graph))
    if (const auto main = main_input(*node)) Move(graph, node, *main, context).run();
  graph.remove_dead();
}

}  // namespace clinfer
