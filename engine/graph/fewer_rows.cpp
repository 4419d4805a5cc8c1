// Finds shapes and values that depend on how many rows an operation finds. Besides shapes for the
// largest number of rows, it infers those for fewer rows.
#include <algorithm>
#include <array>
#include <string_view>

#include "engine/graph/evaluate.h"
#include "engine/graph/inference.h"
#include "kernels/recurrent/loop.h"

namespace clinfer {

static constexpr int64_t kUnknown = -1;  // a size that is not known for fewer rows

bool is_unknown(const ValueInfo& info) { return std::ranges::count(info.shape, kUnknown) != 0; }

namespace {

// Returns whether the operation only moves elements of this input to places that do not depend on
// the elements (the first inputs; for Concat all).
bool moves(const Node& node, size_t input) {
  constexpr std::array<std::string_view, 9> kFirst = {"Gather",  "Slice",     "StridedSlice",
                                                      "Squeeze", "Unsqueeze", "Reshape",
                                                      "Split",   "Transpose", "VariadicSplit"};
  if (node.is("Concat")) return true;
  if (input != 0) return false;
  if (node.is("Convert"))
    return !is_float(node.outputs[0].type) && node.outputs[0].type != ElementType::boolean;
  return std::find(kFirst.begin(), kFirst.end(), node.type) != kFirst.end();
}

bool same(const Tensor& a, const Tensor& b) {
  return !a.empty() && !b.empty() && a.shape() == b.shape() && a.to_ints() == b.to_ints();
}

// Returns the dimension that tells how many rows were found, or nothing if none does.
std::optional<size_t> found_dimension(const Node& node, size_t output) {
  const size_t rank = node.outputs[output].shape.size();
  for (const auto& body : node.bodies)
    for (const Body::Port& port : body->outputs)
      if (port.outer == output && port.sliced)
        return static_cast<size_t>(port.axis < 0 ? port.axis + static_cast<int64_t>(rank)
                                                 : port.axis);
  if (!node.bodies.empty() || rank < 2) return {};
  return node.is("NonZero") ? rank - 1 : 0;
}

// Returns the outputs of the If under this condition. Infers them from `inputs` or, if the branch
// does not allow these, from `others`: a branch may be meant for few rows only.
std::vector<ValueInfo> infer_branch(const Node& node, std::span<const ValueInfo> inputs,
                                    std::span<const ValueInfo> others, bool condition) {
  const auto infer = [&](std::span<const ValueInfo> infos) {
    std::vector<ValueInfo> known(infos.begin(), infos.end());
    known[0].value = Tensor::of(known[0].type, known[0].shape, std::vector<int64_t>{condition});
    return inferred_outputs(node, known);
  };
  try {
    return infer(inputs);
  } catch (const Error&) {
    if (std::ranges::any_of(others, is_unknown)) throw;
    return infer(others);
  }
}

}  // namespace

Tensor Inference::exact_value(const Edge& edge) {
  if (const Tensor* constant = constant_value(edge)) return *constant;
  return fewer_.contains(edge.node) ? Tensor() : value(edge);
}

bool Inference::varies(const Edge& edge, size_t dimension) const {
  const auto found = fewer_.find(edge.node);
  if (found == fewer_.end()) return false;
  const Shape& other = found->second.outputs[edge.port].shape;
  return other[dimension] != edge.node->shape(edge.port)[dimension];
}

bool Inference::varies(const Edge& edge) const {
  bool any = false;
  for (size_t d = 0; d < edge.node->shape(edge.port).size(); ++d) any |= varies(edge, d);
  return any;
}

Inference::Knowledge Inference::knowledge(const Edge& edge) {
  Knowledge all{value(edge), {}, false};
  if (const auto found = fewer_.find(edge.node); found != fewer_.end()) {
    all.fewer = found->second.outputs[edge.port];
    all.moved_only = found->second.moved_only;
  }
  return all;
}

void Inference::set_knowledge(const Node& parameter, Knowledge all) {
  if (all.fewer) fewer_[&parameter] = {{std::move(*all.fewer)}, all.moved_only};
  if (all.value.empty()) return;
  values_[&parameter] = {std::move(all.value)};
  determined_.insert(&parameter);
}

std::vector<ValueInfo> Inference::inputs_with_fewer(const Node& node) {
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge& input = node.inputs[i];
    const NodeOutput& output = input.node->outputs[input.port];
    if (const auto found = fewer_.find(input.node); found != fewer_.end()) {
      infos.push_back(found->second.outputs[input.port]);
      if (decides(node, i)) infos.back().value = {};
    } else {
      infos.push_back({output.type, output.shape, value(input)});
    }
  }
  return infos;
}

// Returns whether the node itself finds a varying number of rows. One whose inputs are always the
// same does not, nor does a loop with a known number of iterations.
bool Inference::finds_rows(const Node& node) {
  if (!node.def->rows_depend_on_data || determined_.contains(&node)) return false;
  bool told = false;
  for (size_t i = 0; i < node.outputs.size(); ++i) told |= found_dimension(node, i).has_value();
  if (!told || !node.is("Loop")) return told;
  std::vector<ValueInfo> infos = known_inputs(node);
  try {
    for (size_t i = 0; i < infos.size(); ++i)
      if (infos[i].value.empty()) infos[i].value = exact_value(node.inputs[i]);
    return !iterations(node.type, *node.bodies[0], infos);
  } catch (const Error&) {
    return true;
  }
}

// Infers the outputs of an If whose branch is not known: in each dimension the larger size of both
// branches.
std::vector<ValueInfo> Inference::infer_branches(const Node& node,
                                                 std::span<const ValueInfo> inputs) {
  const std::vector<ValueInfo> fewer = inputs_with_fewer(node);
  std::vector<ValueInfo> all = infer_branch(node, inputs, fewer, true);
  const std::vector<ValueInfo> other = infer_branch(node, inputs, fewer, false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].type != other.at(i).type || all[i].shape.size() != other[i].shape.size()) {
      // Takes the shapes of one branch for now. The shapes of all that follows are inferred again
      // when the If runs.
      if (const Tensor most = value(node.inputs[0]); !most.empty() && most.elements() == 1) {
        if (most.to_ints()[0] == 0) all[i] = other[i];
        continue;
      }
      throw Error(ErrorCode::unsupported, "the branches give " + to_string(all[i].shape) + " and " +
                                              to_string(other[i].shape) +
                                              ", and the condition is computed at run time");
    }
    for (size_t d = 0; d < all[i].shape.size(); ++d)
      all[i].shape[d] = std::max(all[i].shape[d], other[i].shape[d]);
  }
  return all;
}

// Marks as varying the sizes in which the branches differ.
std::vector<ValueInfo> Inference::infer_fewer_branches(const Node& node,
                                                       std::span<const ValueInfo> inputs) {
  if (!fewer_.contains(node.inputs[0].node)) return inferred_outputs(node, inputs);
  std::vector<ValueInfo> most;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Edge& input = node.inputs[i];
    most.push_back({inputs[i].type, input.node->shape(input.port), value(input)});
  }
  std::vector<ValueInfo> all = infer_branch(node, inputs, most, true);
  const std::vector<ValueInfo> other = infer_branch(node, inputs, most, false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].shape.size() != other.at(i).shape.size()) continue;  // refused earlier
    for (size_t d = 0; d < all[i].shape.size(); ++d)
      if (all[i].shape[d] != other[i].shape[d])
        all[i].shape[d] = node.outputs[i].shape[d] > 1 ? 1 : 0;
  }
  return all;
}

std::vector<ValueInfo> Inference::outputs_with_fewer(const Node& node) {
  std::vector<ValueInfo> infos;
  for (const NodeOutput& output : node.outputs) infos.push_back({output.type, output.shape, {}});
  const std::vector<ValueInfo> inputs = inputs_with_fewer(node);
  if (node.is("ShapeOf")) {
    const Shape& shape = inputs[0].shape;
    if (!is_unknown(inputs[0]))
      infos[0].value = Tensor::of(infos[0].type, {static_cast<int64_t>(shape.size())}, shape);
    return infos;
  }
  // Fewer places to search change nothing but the number of rows.
  const bool rows = finds_rows(node);
  if (!rows || (!node.bodies.empty() && std::ranges::any_of(node.inputs, [&](const Edge& input) {
        return fewer_.contains(input.node);
      }))) {
    if (std::ranges::any_of(inputs, is_unknown))
      throw Error(ErrorCode::unsupported, "an input's size is not known");
    const std::vector<ValueInfo> inferred =
        node.is("If") ? infer_fewer_branches(node, inputs) : inferred_outputs(node, inputs);
    for (size_t i = 0; i < infos.size(); ++i) {
      if (inferred.at(i).shape.size() != infos[i].shape.size())
        throw Error(ErrorCode::unsupported, "the rank depends on values");
      infos[i].shape = inferred[i].shape;
    }
  }
  for (size_t i = 0; rows && i < infos.size(); ++i)
    if (const auto d = found_dimension(node, i))
      infos[i].shape[*d] = infos[i].shape[*d] > 1 ? 1 : 0;
  if (!determined_.contains(&node)) return infos;
  std::vector<Tensor> values;
  for (const ValueInfo& input : inputs) values.push_back(input.value);
  if (std::ranges::any_of(values, [](const Tensor& value) { return value.empty(); })) return infos;
  if (bytes_to_evaluate(node, values) > kMostShapeBytes) return infos;
  const std::vector<Tensor> outputs = evaluate_node(node, values, true);
  for (size_t i = 0; i < infos.size(); ++i) infos[i].value = outputs[i];
  return infos;
}

// Notes what the node gives for fewer rows. To be called once the node's shapes, and whether it is
// determined, are known.
void Inference::note_fewer(const Node& node) {
  if (!node.def || node.outputs.empty()) return;
  const auto varying = [&](const Edge& input) { return fewer_.contains(input.node); };
  const bool from_varying =
      node.is("ShapeOf") ? varies(node.inputs[0]) : std::ranges::any_of(node.inputs, varying);
  if (!from_varying && !finds_rows(node)) return;
  Fewer fewer;
  try {
    fewer.outputs = outputs_with_fewer(node);
  } catch (const Error&) {  // any dimension may vary then
    fewer.outputs.clear();
    for (const NodeOutput& output : node.outputs)
      fewer.outputs.push_back({output.type, Shape(output.shape.size(), kUnknown), {}});
  }
  fewer.moved_only = node.is("ShapeOf");
  if (!fewer.moved_only) {
    fewer.moved_only = true;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (const auto found = fewer_.find(node.inputs[i].node); found != fewer_.end())
        fewer.moved_only &= found->second.moved_only && moves(node, i);
  }
  if (!is_same(node, fewer)) fewer_[&node] = std::move(fewer);
}

// Returns whether shapes and values are the same for every number of rows.
bool Inference::is_same(const Node& node, const Fewer& fewer) {
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (fewer.outputs[i].shape != node.outputs[i].shape) return false;
  if (!determined_.contains(&node)) return true;
  if (!fewer.moved_only) return false;
  try {
    compute(&node);
  } catch (const Error&) {
    return false;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!same(fewer.outputs[i].value, values_.at(&node)[i])) return false;
  return true;
}

}  // namespace clinfer
