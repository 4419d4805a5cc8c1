// Determines signs from the operations that computed a value.
#include "engine/onnx/operations/signs.h"

#include <algorithm>

namespace clinfer {

namespace {

constexpr int kDeepestChain = 16;

// Returns whether an edge is a constant whose values all satisfy the condition.
template <typename Condition>
bool all_constant(const Edge& e, Condition&& condition) {
  const Tensor* constant = constant_value(e);
  if (!constant || is_float(constant->type())) return false;
  const std::vector<int64_t> values = constant->to_ints();
  return std::ranges::all_of(values, condition);
}

bool is_never_negative(const Edge& e, int depth) {
  const Node& node = *e.node;
  if (depth > kDeepestChain) return false;
  if (node.is("TopK")) return e.port == 1;
  if (node.is("NonZero") || node.is("ShapeOf")) return true;
  const auto positive = [](int64_t v) { return v > 0; };
  if (node.is("FloorMod"))
    return !is_float(node.outputs[0].type) && all_constant(node.inputs[1], positive);
  if (node.is("Divide"))
    return !is_float(node.outputs[0].type) && all_constant(node.inputs[1], positive) &&
           is_never_negative(node.inputs[0], depth + 1);
  for (const char* moved : {"Broadcast", "Tile", "Unsqueeze", "Squeeze", "Reshape", "Transpose",
                            "Slice", "Convert", "Gather"})
    if (node.is(moved)) return is_never_negative(node.inputs[0], depth + 1);
  return false;
}

bool is_never_true(const Edge& e, int depth) {
  const Node& node = *e.node;
  if (depth > kDeepestChain) return false;
  if (node.is("Constant")) return all_constant(e, [](int64_t v) { return v == 0; });
  if (node.is("Less"))
    return is_never_negative(node.inputs[0], depth + 1) &&
           all_constant(node.inputs[1], [](int64_t v) { return v <= 0; });
  const auto never = [&](const Edge& input) { return is_never_true(input, depth + 1); };
  if (node.is("LogicalAnd")) return std::ranges::any_of(node.inputs, never);
  if (node.is("LogicalOr") || node.is("LogicalXor")) return std::ranges::all_of(node.inputs, never);
  return false;
}

}  // namespace

bool never_negative(const Edge& e) { return is_never_negative(e, 0); }
bool never_true(const Edge& e) { return is_never_true(e, 0); }

}  // namespace clinfer
