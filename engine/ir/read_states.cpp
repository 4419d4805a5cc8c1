// Makes states of ReadValue and Assign.
#include "engine/ir/read_states.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/graph/insertion.h"
#include "engine/graph/states.h"
#include "engine/ir/ir_text.h"
#include "kernels/base/text.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Without an initial value, a ReadValue states type and shape as attributes (opset 6).
std::vector<ValueInfo> infer_read_value(const ShapeContext& context) {
  if (context.inputs.size() > 1) throw Error(ErrorCode::bad_model, "has more than one input");
  if (!context.inputs.empty()) return {{context.inputs[0].type, context.inputs[0].shape}};
  const std::string type_text = context.attributes.get_string("variable_type", "");
  const std::string shape_text = context.attributes.get_string("variable_shape", "");
  const auto type = parse_element_type(type_text);
  const auto shape = parse_shape(shape_text);
  if (!type || !shape)
    throw Error(ErrorCode::bad_model,
                "has no initial value, and no variable_type and variable_shape that say what it "
                "is: \"" +
                    printable(type_text) + "\" and \"" + printable(shape_text) + "\"");
  if (std::ranges::count(*shape, kDynamic) != 0)
    throw Error(ErrorCode::unsupported,
                "has no initial value, and its shape " + to_string(*shape) +
                    " is open; set a static shape when converting the model");
  return {{type->in_graph, *shape}};
}

std::vector<ValueInfo> infer_assign(const ShapeContext& context) {
  if (context.inputs.size() != 1) throw Error(ErrorCode::bad_model, "must have one input");
  return {{context.inputs[0].type, context.inputs[0].shape}};
}

const OpDef kReadValue{"ReadValue", {3, 6}, infer_read_value};
const OpDef kAssign{"Assign", {3, 6}, infer_assign};

std::string variable_of(const Node& node) {
  const std::string name = node.attributes.get_string("variable_id", "");
  if (name.empty()) throw Error(ErrorCode::bad_model, label(node) + ": has no variable_id");
  return printable(name);
}

// Returns the value that a state has after a reset, if the file has it as a constant. Files with
// compressed weights convert it.
const Tensor* initial_constant(const Node& node, Tensor& converted) {
  if (node.inputs.empty()) return nullptr;
  const Edge& from = node.inputs[0];
  if (const Tensor* value = constant_value(from)) return value;
  if (!from.node->is("Convert")) return nullptr;
  const Tensor* const value = constant_value(from.node->inputs[0]);
  if (value == nullptr) return nullptr;
  converted = value->convert(from.node->outputs[0].type);
  return &converted;
}

// Returns the value of the state for the operations that read it.
Edge value_for(Graph& graph, Node& node, const std::string& name, const Edge& state) {
  Tensor converted;
  if (const Tensor* initial = initial_constant(node, converted)) {
    graph.initial_states[name] = *initial;
    return state;
  }
  if (node.inputs.empty()) return state;
  // The initial value is computed, perhaps from inputs: it counts where the state is new.
  const Edge is_new = add_is_new(graph, name);
  return Insertion(graph, &node).op("Select", 1, {is_new, node.inputs[0], state});
}

}  // namespace

const OpDef* state_op(const std::string& type, int opset) {
  for (const OpDef* op : {&kReadValue, &kAssign})
    if (op->type == type && std::ranges::count(op->opsets, opset) != 0) return op;
  return nullptr;
}

void make_states(Graph& graph) {
  std::map<std::string, Edge> values;  // before the inference, by variable
  for (Node* node : nodes_of(graph)) {
    if (node->def != &kReadValue) continue;
    const std::string name = variable_of(*node);
    if (values.contains(name))
      throw Error(ErrorCode::unsupported, label(*node) +
                                              ": another ReadValue reads the variable \"" + name +
                                              "\"; one of them is supported");
    const NodeOutput& output = node->outputs[0];
    const Edge state = add_state(graph, name, output.type, output.shape);
    state.node->outputs[0].names = output.names;
    values[name] = value_for(graph, *node, name, state);
    graph.replace_uses({node, 0}, values[name]);
    graph.disconnect(node);
  }
  std::set<std::string> assigned;
  for (Node* node : nodes_of(graph)) {
    if (node->def != &kAssign) continue;
    const std::string name = variable_of(*node);
    if (!values.contains(name))
      throw Error(ErrorCode::bad_model,
                  label(*node) + ": no ReadValue reads the variable \"" + name + "\"");
    if (!assigned.insert(name).second)
      throw Error(ErrorCode::bad_model,
                  label(*node) + ": another Assign sets the variable \"" + name + "\"");
    const Edge value = node->inputs[0];
    graph.replace_uses({node, 0}, value);
    graph.disconnect(node);
    try {
      set_next_value(graph, name, value);
    } catch (const Error& error) {
      throw Error(error.code(), label(*node) + ": " + error.what(), error.place());
    }
  }
  if (!values.empty()) graph.remove_dead();
}

}  // namespace clinfer
