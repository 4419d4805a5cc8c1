// Reads the nodes of a graph, of a called function, or of a body inside an operation, and knows
// which value has which name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/onnx/onnx_node.h"

namespace clinfer {

bool is_own_domain(std::string_view domain);  // both names of ONNX's own domain
bool is_control(std::string_view type);       // If, Loop, Scan: operations with bodies

// Finds the functions that a model defines.
class OnnxFunctions {
 public:
  explicit OnnxFunctions(const onnx::ModelProto& model);
  // Null if no function has this name.
  const onnx::FunctionProto* find(const onnx::NodeProto& node) const;

 private:
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> all_;
};

class GraphReader {
 public:
  // `outer` is the reader of the graph around a body, whose values the body can use. With the same
  // writer the body is written in place, with another one it becomes a graph of its own.
  GraphReader(GraphWriter& writer, OnnxTensors& tensors, const OnnxFunctions& functions,
              GraphReader* outer);

  void import_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);
  // Treats nodes of these types as the user's. `custom` must outlive the reader.
  void use_custom(const CustomLayers& custom) { custom_ = &custom; }
  void define(const std::string& name, const Edge& edge);
  void read(const onnx::GraphProto& graph);  // reads the initialisers and nodes
  Edge edge(const std::string& name);        // throws Error{bad_model} if nothing has that name

  // A value from outside that became a Parameter: its origin and the Parameter's index.
  struct Captured {
    Edge from;
    size_t parameter = 0;
  };
  const std::vector<Captured>& captured() const { return captured_; }

 private:
  std::optional<Edge> find(const std::string& name);
  Edge capture(const Edge& from, const std::string& name);
  void read_node(const onnx::NodeProto& node);
  void note_shapes(const onnx::GraphProto& graph);
  std::vector<Edge> read_custom(const onnx::NodeProto& node, const std::vector<Edge>& inputs,
                                const OnnxNode::Attributes& attributes,
                                std::shared_ptr<const CustomLayer> layer);
  OnnxNode::Attributes resolve(const onnx::NodeProto& node) const;
  std::vector<Edge> call(const onnx::FunctionProto& function, const std::vector<Edge>& inputs,
                         const OnnxNode::Attributes& attributes);
  // In subgraphs.cpp:
  void read_control(OnnxNode& node);
  void read_if(OnnxNode& node);
  void read_loop(OnnxNode& node);
  void read_loop_as_operation(OnnxNode& node);
  // Returns false if an iteration changes sizes of states that `known` did not list as changing;
  // `known` lists them afterwards.
  bool read_loop_with(OnnxNode& node, std::vector<Inference::Knowledge>& known);
  bool write_out_loop(OnnxNode& node);
  void read_scan(OnnxNode& node);
  std::vector<Edge> scan(OnnxNode& node, const std::vector<Edge>& scanned_inputs);

  GraphWriter& writer_;
  OnnxTensors& tensors_;
  const OnnxFunctions& functions_;
  GraphReader* outer_;
  int depth_ = 0;
  const CustomLayers* custom_ = nullptr;
  std::unordered_map<std::string, Shape> stated_shapes_;  // -1: open dimension
  std::unordered_map<std::string, Edge> values_;
  std::unordered_map<std::string, std::function<Edge()>> initialisers_;
  std::set<std::string> absent_;       // inputs of a function that the call omits
  std::map<std::string, int> opsets_;  // version by domain
  OnnxNode::Attributes call_attributes_;
  std::map<std::pair<const Node*, int>, QuantizedFrom> quantized_;
  std::map<std::pair<const Node*, int>, DequantizedFrom> dequantized_;
  std::vector<Captured> captured_;
};

}  // namespace clinfer
