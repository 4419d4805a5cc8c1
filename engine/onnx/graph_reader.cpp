// Reads the nodes of graphs, functions and bodies, and maps names to edges.
#include "engine/onnx/graph_reader.h"

#include "engine/onnx/node_order.h"
#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

constexpr int kDeepestCalls = 32;  // nesting of functions and bodies

}  // namespace

bool is_own_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

bool is_control(std::string_view type) { return type == "If" || type == "Loop" || type == "Scan"; }

OnnxFunctions::OnnxFunctions(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& function : model.functions())
    all_[{function.domain(), function.name()}] = &function;
}

const onnx::FunctionProto* OnnxFunctions::find(const onnx::NodeProto& node) const {
  const auto found = all_.find({node.domain(), node.op_type()});
  return found == all_.end() ? nullptr : found->second;
}

GraphReader::GraphReader(GraphWriter& writer, OnnxTensors& tensors, const OnnxFunctions& functions,
                         GraphReader* outer)
    : writer_(writer), tensors_(tensors), functions_(functions), outer_(outer) {
  if (!outer) return;
  opsets_ = outer->opsets_;
  call_attributes_ = outer->call_attributes_;
  depth_ = outer->depth_ + 1;
  custom_ = outer->custom_;
  if (depth_ > kDeepestCalls) unsupported_node("bodies or functions are nested too deeply");
}

void GraphReader::import_opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  opsets_.clear();
  for (const auto& import : imports)
    opsets_[is_own_domain(import.domain()) ? "" : import.domain()] =
        static_cast<int>(import.version());
}

void GraphReader::define(const std::string& name, const Edge& edge) {
  if (name.empty()) return;
  if (!values_.emplace(name, edge).second)
    bad_node("two values have the name \"" + printable(name) + "\"");
}

std::optional<Edge> GraphReader::find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  if (const auto found = initialisers_.find(name); found != initialisers_.end()) {
    const Edge edge = found->second();
    values_.emplace(name, edge);
    return edge;
  }
  if (!outer_) return {};
  const auto found = outer_->find(name);
  if (!found || &outer_->writer_ == &writer_) return found;
  const Edge inner = capture(*found, name);
  values_.emplace(name, inner);
  return inner;
}

// Returns an outer value for use in this body: as a new input of the body, or as a copy if it is
// constant.
Edge GraphReader::capture(const Edge& from, const std::string& name) {
  if (const Tensor* constant = constant_value(from)) return writer_.constant(name, *constant);
  const NodeOutput& output = from.node->outputs[from.port];
  captured_.push_back({from, writer_.graph().parameters.size()});
  return writer_.parameter(name, output.type, output.shape,
                           outer_->writer_.inference().knowledge(from));
}

Edge GraphReader::edge(const std::string& name) {
  const auto found = find(name);
  if (!found) bad_node("no node gives the value \"" + printable(name) + "\"");
  return *found;
}

void GraphReader::read(const onnx::GraphProto& graph) {
  const auto give = [&](const std::string& name, const auto& tensor, int data_type) {
    const auto value = [this, name, &tensor, data_type] {
      try {
        return writer_.constant(name, tensors_.read(tensor), narrow_name_of(data_type));
      } catch (const Error& error) {
        throw Error(error.code(), "initialiser \"" + printable(name) + "\": " + error.what(),
                    error.place());
      }
    };
    // An initialiser with the name of a body's input is only the input's default.
    if (!values_.contains(name) && !initialisers_.emplace(name, value).second)
      bad_node("two initialisers have the name \"" + printable(name) + "\"");
  };
  for (const auto& tensor : graph.initializer()) give(tensor.name(), tensor, tensor.data_type());
  for (const auto& tensor : graph.sparse_initializer())
    give(tensor.values().name(), tensor, tensor.values().data_type());
  if (custom_) note_shapes(graph);
  for (const onnx::NodeProto* node : in_order(graph.node())) read_node(*node);
}

void GraphReader::read_node(const onnx::NodeProto& node) {
  const std::string domain = is_own_domain(node.domain()) ? "" : node.domain();
  const auto opset = opsets_.find(domain);
  const int version = opset == opsets_.end() ? 1 : opset->second;
  try {
    std::vector<Edge> inputs;
    for (const std::string& name : node.input())
      inputs.push_back(name.empty() || absent_.contains(name) ? Edge{} : edge(name));
    const OnnxNode::Attributes attributes = resolve(node);
    std::vector<Edge> outputs;
    if (auto layer = custom_ ? custom_->find(node.op_type()) : nullptr) {
      outputs = read_custom(node, inputs, attributes, std::move(layer));
    } else if (const auto* function = functions_.find(node)) {
      outputs = call(*function, inputs, attributes);
    } else {
      OnnxNode context(writer_, tensors_, node, version, inputs, attributes, quantized_,
                       dequantized_);
      if (domain.empty() && is_control(node.op_type()))
        read_control(context);
      else if (const OnnxOp* op = find_onnx_op(domain, node.op_type()))
        op->translate(context);
      else
        unsupported_node("the operation is not supported");
      outputs = context.outputs();
    }
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      if (static_cast<size_t>(i) >= outputs.size() || !outputs[static_cast<size_t>(i)].node)
        unsupported_node("its output " + std::to_string(i) + " (\"" + printable(name) +
                         "\") is not supported");
      const Edge& to = outputs[static_cast<size_t>(i)];
      if (!to.node->is("Parameter")) to.node->outputs[to.port].names.push_back(name);
      define(name, to);
    }
  } catch (const Error& error) {
    const std::string name =
        node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
    throw Error(error.code(),
                "node \"" + printable(name) + "\" (" +
                    (domain.empty() ? "" : printable(domain) + " ") + printable(node.op_type()) +
                    ", opset " + std::to_string(version) + "): " + error.what(),
                error.place());
  }
}

// Inside a function, an attribute may refer to an attribute of the call.
OnnxNode::Attributes GraphReader::resolve(const onnx::NodeProto& node) const {
  OnnxNode::Attributes attributes;
  for (const onnx::AttributeProto& a : node.attribute()) {
    if (a.ref_attr_name().empty()) {
      attributes[a.name()] = &a;
    } else if (const auto found = call_attributes_.find(a.ref_attr_name());
               found != call_attributes_.end()) {
      attributes[a.name()] = found->second;
    }
  }
  return attributes;
}

std::vector<Edge> GraphReader::call(const onnx::FunctionProto& function,
                                    const std::vector<Edge>& inputs,
                                    const OnnxNode::Attributes& attributes) {
  GraphReader body(writer_, tensors_, functions_, this);
  body.outer_ = nullptr;  // a function sees only its inputs
  body.import_opsets(function.opset_import());
  body.call_attributes_ = attributes;
  for (int i = 0; i < function.input_size(); ++i)
    if (static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)].node)
      body.define(function.input(i), inputs[static_cast<size_t>(i)]);
    else
      body.absent_.insert(function.input(i));
  for (const onnx::NodeProto* node : in_order(function.node())) body.read_node(*node);
  std::vector<Edge> outputs;
  for (const std::string& name : function.output()) outputs.push_back(body.edge(name));
  return outputs;
}

}  // namespace clinfer
