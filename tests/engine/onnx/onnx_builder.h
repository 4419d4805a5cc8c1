// ONNX models for tests, written node by node.
#pragma once

#include <onnx.pb.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "engine/onnx/onnx_reader.h"

namespace clinfer {

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int opset = 17) {
    model_.set_ir_version(8);
    auto* import = model_.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  void import(const std::string& domain, int version) {
    auto* added = model_.add_opset_import();
    added->set_domain(domain);
    added->set_version(version);
  }

  // Dimensions below 0 are open.
  void input(const std::string& name, const Shape& shape, int type = onnx::TensorProto::FLOAT) {
    describe(*graph().add_input(), name, shape, type);
  }
  void output(const std::string& name) { graph().add_output()->set_name(name); }

  static void describe(onnx::ValueInfoProto& info, const std::string& name, const Shape& shape,
                       int type = onnx::TensorProto::FLOAT) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (int64_t dim : shape) {
      auto* added = tensor->mutable_shape()->add_dim();
      if (dim >= 0)
        added->set_dim_value(dim);
      else
        added->set_dim_param("open");
    }
  }

  static onnx::TensorProto floats(const std::string& name, const Shape& shape,
                                  const std::vector<float>& values) {
    onnx::TensorProto tensor = of(name, shape, onnx::TensorProto::FLOAT);
    for (float value : values) tensor.add_float_data(value);
    return tensor;
  }
  static onnx::TensorProto ints(const std::string& name, const Shape& shape,
                                const std::vector<int64_t>& values) {
    onnx::TensorProto tensor = of(name, shape, onnx::TensorProto::INT64);
    for (int64_t value : values) tensor.add_int64_data(value);
    return tensor;
  }
  static onnx::TensorProto of(const std::string& name, const Shape& shape, int type) {
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (int64_t dim : shape) tensor.add_dims(dim);
    return tensor;
  }
  void initialiser(const onnx::TensorProto& tensor) { *graph().add_initializer() = tensor; }

  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& domain = "") {
    return fill(*graph().add_node(), type, inputs, outputs, domain);
  }
  static onnx::NodeProto& fill(onnx::NodeProto& node, const std::string& type,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs,
                               const std::string& domain = "") {
    node.set_op_type(type);
    node.set_domain(domain);
    node.set_name(outputs.empty() ? type : "node_" + outputs[0]);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    return node;
  }

  std::string bytes() const {
    std::string text;
    model_.SerializeToString(&text);
    return text;
  }
  OnnxModel read(const InputShapes& shapes = {}) const {
    const std::string text = bytes();
    return read_onnx(std::as_bytes(std::span(text.data(), text.size())), "test.onnx", shapes);
  }

 private:
  onnx::ModelProto model_;
};

inline void set(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}
inline void set(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(value);
}
inline void set(onnx::NodeProto& node, const std::string& name,
                const std::vector<int64_t>& values) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) a->add_ints(value);
}
inline onnx::GraphProto& graph_of(onnx::NodeProto& node, const std::string& name) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::GRAPH);
  return *a->mutable_g();
}

}  // namespace clinfer
