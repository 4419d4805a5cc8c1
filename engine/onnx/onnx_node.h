// Represents one ONNX node while it is translated: its inputs, its attributes, and the operations
// that most translations need.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/onnx/graph_writer.h"
#include "engine/onnx/tensors.h"

namespace clinfer {

// The inputs of a QuantizeLinear, for the DequantizeLinear that reads it: both together become one
// FakeQuantize.
struct QuantizedFrom {
  Edge source, scale, zero_point;  // zero_point has no node if the file has none
  int64_t axis = 1;
  bool in_steps = false;  // true if the source is in steps of the scale already
};

// Floats that a DequantizeLinear makes: `steps` (integers in floats, from the zero point) times the
// scale.
struct DequantizedFrom {
  Edge steps, scale;
  int64_t axis = 1;
};

class OnnxNode {
 public:
  using Attributes = std::map<std::string, const onnx::AttributeProto*>;

  OnnxNode(GraphWriter& writer, OnnxTensors& tensors, const onnx::NodeProto& proto, int opset,
           std::vector<Edge> inputs, Attributes attributes,
           std::map<std::pair<const Node*, int>, QuantizedFrom>& quantized,
           std::map<std::pair<const Node*, int>, DequantizedFrom>& dequantized)
      : quantized(quantized),
        dequantized(dequantized),
        writer_(writer),
        tensors_(tensors),
        proto_(proto),
        opset_(opset),
        inputs_(std::move(inputs)),
        attributes_(std::move(attributes)),
        outputs_(static_cast<size_t>(proto.output_size())) {}

  const std::string& type() const { return proto_.op_type(); }
  const onnx::NodeProto& proto() const { return proto_; }
  int opset() const { return opset_; }  // imported version of the operation's domain
  const std::string& name() const {
    return proto_.name().empty() && proto_.output_size() > 0 ? proto_.output(0) : proto_.name();
  }

  // Inputs. in() throws Error{bad_model} if the input is missing.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].node; }
  Edge in(size_t i) const;
  ElementType type(const Edge& e) const { return e.node->outputs[e.port].type; }
  // Returns the largest shape; there may be fewer rows if an operation finds them at run time.
  const Shape& shape(const Edge& e) const { return e.node->shape(e.port); }
  // Returns whether dimension `d`, counted from the first, depends on the number of rows that an
  // operation finds.
  bool varies(const Edge& e, int64_t d) const {
    return writer_.inference().varies(e, static_cast<size_t>(d));
  }
  int64_t rank(const Edge& e) const { return static_cast<int64_t>(shape(e).size()); }
  // Returns one dimension; a negative `d` counts from the end. Throws Error{bad_model} if there is
  // no such dimension, Error{unsupported} if it varies.
  int64_t dim(const Edge& e, int64_t d) const;
  // Returns all dimensions. Throws Error{unsupported} if one varies.
  const Shape& sizes(const Edge& e) const;
  // Returns all dimensions of a value that must have `rank` of them. Throws Error{bad_model} if it
  // has not, and errors as above.
  const Shape& shape(const Edge& e, size_t rank) const;
  // Returns one dimension as an edge with a single number, which is computed at run time if it
  // varies.
  Edge size_of(const Edge& e, int64_t d);
  // Return values that are constant or follow from shapes; an empty tensor or nullopt if they
  // differ between inferences.
  Tensor known(const Edge& e) const { return writer_.known(e); }
  std::optional<std::vector<int64_t>> known_ints(const Edge& e) const;
  // Return known values. Throw Error{unsupported}, which names `what`, if they are computed at run
  // time.
  std::vector<int64_t> need_ints(const Edge& e, const char* what) const;
  int64_t need_int(const Edge& e, const char* what) const;
  float need_float(const Edge& e, const char* what) const;

  // Attributes. These functions throw Error{bad_model} if the attribute has another type, or if it
  // is missing and has no default.
  bool has_attribute(const char* name) const { return attributes_.count(name) != 0; }
  int64_t int_of(const char* name, std::optional<int64_t> otherwise = {}) const;
  float float_of(const char* name, std::optional<float> otherwise = {}) const;
  std::string string_of(const char* name, std::optional<std::string> otherwise = {}) const;
  std::vector<int64_t> ints_of(const char* name,
                               std::optional<std::vector<int64_t>> otherwise = {}) const;
  std::vector<float> floats_of(const char* name,
                               std::optional<std::vector<float>> otherwise = {}) const;
  std::vector<std::string> strings_of(const char* name) const;
  Tensor tensor_of(const char* name) const;
  const onnx::AttributeProto& attribute(const char* name) const;
  // Returns a list of integers that is an attribute before opset `since` and input `i` from then
  // on; nullopt if it is missing.
  std::optional<std::vector<int64_t>> ints_since(int since, const char* name, size_t i) const;
  // Return axes of a value of this rank, converted to 0..rank-1.
  int64_t axis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;

  // Operations.
  Edge op(const std::string& type, int opset, std::vector<Edge> inputs,
          const AttributePairs& attributes = {}, size_t outputs = 1,
          std::vector<std::shared_ptr<const Body>> bodies = {});
  // Adds a table that the translation needs; for tensors of the file use stored().
  Edge constant(Tensor value) {
    tensors_.count_made(value.bytes());
    return stored(std::move(value));
  }
  Edge stored(Tensor value) { return writer_.constant(name(), std::move(value)); }
  Edge stored(const onnx::TensorProto& tensor) {
    return writer_.constant(name(), tensors_.read(tensor), narrow_name_of(tensor.data_type()));
  }
  Edge number(float value);                       // f32, no dimensions
  Edge number_like(const Edge& e, double value);  // has the type of e, no dimensions
  Edge ints(const std::vector<int64_t>& values);  // i64, one dimension
  Edge integer(int64_t value);                    // i64, no dimensions
  Edge convert(const Edge& e, ElementType type);
  Edge to_float8(const Edge& e, const Float8Format& format, bool saturate) {
    return writer_.to_float8(name(), convert(e, ElementType::f32), format, saturate);
  }
  // Reshapes a value. A dimension of 0 keeps the value's dimension, so that the batch may change
  // later.
  Edge reshape(const Edge& e, const std::vector<int64_t>& pattern);
  Edge reshape_to(const Edge& e, const Edge& shape, bool zero_keeps = false);
  Edge transpose(const Edge& e, const std::vector<int64_t>& order);
  Edge unsqueeze(const Edge& e, const std::vector<int64_t>& axes);
  Edge squeeze(const Edge& e, const std::vector<int64_t>& axes);
  Edge slice(const Edge& e, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  Edge gather(const Edge& e, const Edge& indices, int64_t axis);
  Edge concat(std::vector<Edge> parts, int64_t axis);
  std::vector<Edge> split(const Edge& e, int64_t axis, int64_t parts);
  Edge shape_of(const Edge& e);  // i64
  Edge reduce(const char* type, const Edge& e, const std::vector<int64_t>& axes, bool keep = true);
  Edge softmax(const Edge& e, int64_t axis) {
    return op("SoftMax", 8, {e}, {{"axis", std::to_string(axis)}});
  }
  Edge matmul(const Edge& a, const Edge& b, bool turn_a = false, bool turn_b = false);
  Edge add(const Edge& a, const Edge& b) { return op("Add", 1, {a, b}); }
  Edge subtract(const Edge& a, const Edge& b) { return op("Subtract", 1, {a, b}); }
  Edge multiply(const Edge& a, const Edge& b) { return op("Multiply", 1, {a, b}); }
  Edge divide(const Edge& a, const Edge& b);  // integers are rounded towards 0
  Edge round(const Edge& e) { return op("Round", 5, {e}, {{"mode", "half_to_even"}}); }
  Edge clamp(const Edge& e, double low, double high);
  // Returns a list as [1,..,n,..,1] with n at dimension `axis` of a value of this rank. Returns a
  // scalar or a list of one element unchanged. Throws Error{bad_model} if the value has no such
  // dimension.
  Edge along(const Edge& list, int64_t axis, int64_t rank);

  // Outputs.
  size_t output_count() const { return outputs_.size(); }
  bool wants(size_t i) const { return i < outputs_.size() && !proto_.output(int(i)).empty(); }
  void out(size_t i, const Edge& e) {
    if (i < outputs_.size()) outputs_[i] = e;
  }
  void out(const Edge& e) { out(0, e); }
  const std::vector<Edge>& outputs() const { return outputs_; }

  // The values of this graph that a QuantizeLinear produces.
  std::map<std::pair<const Node*, int>, QuantizedFrom>& quantized;
  // The values of this graph that a DequantizeLinear produces.
  std::map<std::pair<const Node*, int>, DequantizedFrom>& dequantized;

 private:
  void align_constants(std::vector<Edge>& inputs);
  const onnx::AttributeProto* find(const char* name, int type, bool has_default) const;

  GraphWriter& writer_;
  OnnxTensors& tensors_;
  const onnx::NodeProto& proto_;
  int opset_;
  std::vector<Edge> inputs_;
  Attributes attributes_;
  std::vector<Edge> outputs_;
};

inline Edge port(const Edge& first, int i) { return {first.node, first.port + i}; }

[[noreturn]] void bad_node(const std::string& what,
                           SourcePlace place = SourcePlace::here());  // throws Error{bad_model}
[[noreturn]] void unsupported_node(const std::string& what,
                                   // Throws Error{unsupported}.
                                   SourcePlace place = SourcePlace::here());

}  // namespace clinfer
