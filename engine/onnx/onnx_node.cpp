// Reads attributes by name and type, and defines the short forms of common operations.
#include "engine/onnx/onnx_node.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace clinfer {

void bad_node(const std::string& what, SourcePlace place) {
  throw Error(ErrorCode::bad_model, what, place);
}
void unsupported_node(const std::string& what, SourcePlace place) {
  throw Error(ErrorCode::unsupported, what, place);
}

Edge OnnxNode::in(size_t i) const {
  if (!has(i)) bad_node("needs an input " + std::to_string(i));
  return inputs_[i];
}

int64_t OnnxNode::dim(const Edge& e, int64_t d) const {
  const int64_t at = d < 0 ? d + rank(e) : d;
  if (at < 0 || at >= rank(e))
    bad_node("a value of shape " + to_string(shape(e)) + " has too few dimensions");
  if (varies(e, at))
    unsupported_node("needs the size of dimension " + std::to_string(at) +
                     " of a value, which depends on how many rows are found at run time");
  return shape(e)[static_cast<size_t>(at)];
}

const Shape& OnnxNode::sizes(const Edge& e) const {
  for (int64_t d = 0; d < rank(e); ++d) dim(e, d);
  return shape(e);
}

Edge OnnxNode::size_of(const Edge& e, int64_t d) {
  return varies(e, d) ? gather(shape_of(e), integer(d), 0) : integer(dim(e, d));
}

const Shape& OnnxNode::shape(const Edge& e, size_t rank) const {
  if (shape(e).size() != rank)
    bad_node("a value of shape " + to_string(shape(e)) + " must have " + std::to_string(rank) +
             " dimensions");
  return sizes(e);
}

std::optional<std::vector<int64_t>> OnnxNode::known_ints(const Edge& e) const {
  const Tensor value = known(e);
  return value.empty() ? std::nullopt : std::optional(value.to_ints());
}

std::vector<int64_t> OnnxNode::need_ints(const Edge& e, const char* what) const {
  auto values = known_ints(e);
  if (!values)
    unsupported_node(std::string(what) + " depends on values that are computed at run time");
  return *values;
}

int64_t OnnxNode::need_int(const Edge& e, const char* what) const {
  const std::vector<int64_t> values = need_ints(e, what);
  if (values.size() != 1) bad_node(std::string(what) + " must be one number");
  return values[0];
}

float OnnxNode::need_float(const Edge& e, const char* what) const {
  const Tensor value = known(e);
  if (value.empty())
    unsupported_node(std::string(what) + " depends on values that are computed at run time");
  if (value.elements() != 1) bad_node(std::string(what) + " must be one number");
  return value.to_floats()[0];
}

// ---- attributes ---------------------------------------------------------------------------------

const onnx::AttributeProto* OnnxNode::find(const char* name, int type, bool has_default) const {
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) {
    if (!has_default) bad_node(std::string("has no attribute ") + name);
    return nullptr;
  }
  // Old files do not state the type.
  if (found->second->type() != onnx::AttributeProto::UNDEFINED && found->second->type() != type)
    bad_node(std::string("attribute ") + name + " is of another type");
  return found->second;
}

int64_t OnnxNode::int_of(const char* name, std::optional<int64_t> otherwise) const {
  const auto* a = find(name, onnx::AttributeProto::INT, otherwise.has_value());
  return a ? a->i() : *otherwise;
}

float OnnxNode::float_of(const char* name, std::optional<float> otherwise) const {
  const auto* a = find(name, onnx::AttributeProto::FLOAT, otherwise.has_value());
  return a ? a->f() : *otherwise;
}

std::string OnnxNode::string_of(const char* name, std::optional<std::string> otherwise) const {
  const auto* a = find(name, onnx::AttributeProto::STRING, otherwise.has_value());
  return a ? a->s() : *otherwise;
}

std::vector<int64_t> OnnxNode::ints_of(const char* name,
                                       std::optional<std::vector<int64_t>> otherwise) const {
  const auto* a = find(name, onnx::AttributeProto::INTS, otherwise.has_value());
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : *otherwise;
}

std::vector<float> OnnxNode::floats_of(const char* name,
                                       std::optional<std::vector<float>> otherwise) const {
  const auto* a = find(name, onnx::AttributeProto::FLOATS, otherwise.has_value());
  return a ? std::vector<float>(a->floats().begin(), a->floats().end()) : *otherwise;
}

std::vector<std::string> OnnxNode::strings_of(const char* name) const {
  const auto* a = find(name, onnx::AttributeProto::STRINGS, true);
  return a ? std::vector<std::string>(a->strings().begin(), a->strings().end())
           : std::vector<std::string>();
}

Tensor OnnxNode::tensor_of(const char* name) const {
  const onnx::AttributeProto& a = attribute(name);
  if (a.has_sparse_tensor()) return tensors_.read(a.sparse_tensor());
  if (!a.has_t()) bad_node(std::string("attribute ") + name + " is of another type");
  return tensors_.read(a.t());
}

const onnx::AttributeProto& OnnxNode::attribute(const char* name) const {
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) bad_node(std::string("has no attribute ") + name);
  return *found->second;
}

std::optional<std::vector<int64_t>> OnnxNode::ints_since(int since, const char* name,
                                                         size_t i) const {
  if (opset_ < since) return has_attribute(name) ? std::optional(ints_of(name)) : std::nullopt;
  return has(i) ? std::optional(need_ints(in(i), name)) : std::nullopt;
}

int64_t OnnxNode::axis(int64_t axis, int64_t rank) const {
  const int64_t wrapped = axis < 0 ? axis + rank : axis;
  if (wrapped < 0 || wrapped >= rank)
    bad_node("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) +
             " dimensions");
  return wrapped;
}

std::vector<int64_t> OnnxNode::axes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& a : axes) a = axis(a, rank);
  return axes;
}

// ---- operations ---------------------------------------------------------------------------------

// Layers are written as OpenVINO's converter writes them, so that both files of a model have the
// same keys of tuning records.
static bool broadcasts(const std::string& type) {
  static const auto& all = *new const std::set<std::string>{
      "Add",   "Subtract",  "Multiply", "Divide",     "Maximum",    "Minimum",          "Power",
      "Equal", "NotEqual",  "Less",     "Greater",    "LessEqual",  "GreaterEqual",     "FloorMod",
      "Mod",   "LogicalOr", "Select",   "LogicalAnd", "LogicalXor", "SquaredDifference"};
  return all.contains(type);
}

Edge OnnxNode::op(const std::string& type, int opset, std::vector<Edge> inputs,
                  const AttributePairs& attributes, size_t outputs,
                  std::vector<std::shared_ptr<const Body>> bodies) {
  AttributePairs all = attributes;
  if (broadcasts(type)) {
    all.emplace_back("auto_broadcast", "numpy");
    align_constants(inputs);
  }
  return writer_.add(name(), type, opset, std::move(inputs), all, outputs, std::move(bodies));
}

// Gives constants as many dimensions as the other operand has, as in OpenVINO's files.
void OnnxNode::align_constants(std::vector<Edge>& inputs) {
  size_t most = 0;
  for (const Edge& e : inputs) most = std::max(most, shape(e).size());
  for (Edge& e : inputs) {
    const Tensor* value = constant_value(e);
    if (!value || !is_float(value->type()) || shape(e).size() == most) continue;
    Shape wide(most - shape(e).size(), 1);
    wide.insert(wide.end(), shape(e).begin(), shape(e).end());
    e = stored(value->reshaped(wide));
  }
}

Edge OnnxNode::number(float value) {
  return constant(Tensor::of(ElementType::f32, {}, std::vector<float>{value}));
}

Edge OnnxNode::number_like(const Edge& e, double value) {
  return constant(Tensor::of(type(e), {}, std::vector<double>{value}));
}

Edge OnnxNode::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
}

Edge OnnxNode::integer(int64_t value) {
  return constant(Tensor::of(ElementType::i64, {}, std::vector<int64_t>{value}));
}

Edge OnnxNode::convert(const Edge& e, ElementType to) {
  if (type(e) == to) return e;
  return op("Convert", 1, {e}, {{"destination_type", std::string(name_of(to))}});
}

Edge OnnxNode::reshape(const Edge& e, const std::vector<int64_t>& pattern) {
  return reshape_to(e, ints(pattern), true);
}

Edge OnnxNode::reshape_to(const Edge& e, const Edge& shape, bool zero_keeps) {
  return op("Reshape", 1, {e, shape}, {{"special_zero", text_of(zero_keeps)}});
}

Edge OnnxNode::transpose(const Edge& e, const std::vector<int64_t>& order) {
  return std::is_sorted(order.begin(), order.end()) ? e : op("Transpose", 1, {e, ints(order)});
}

Edge OnnxNode::unsqueeze(const Edge& e, const std::vector<int64_t>& axes) {
  return axes.empty() ? e : op("Unsqueeze", 1, {e, ints(axes)});
}

Edge OnnxNode::squeeze(const Edge& e, const std::vector<int64_t>& axes) {
  return axes.empty() ? e : op("Squeeze", 1, {e, ints(axes)});
}

Edge OnnxNode::slice(const Edge& e, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return op("Slice", 8, {e, ints({begin}), ints({end}), ints({step}), ints({axis})});
}

Edge OnnxNode::gather(const Edge& e, const Edge& indices, int64_t axis) {
  return op("Gather", 8, {e, indices, integer(axis)}, {{"batch_dims", "0"}});
}

Edge OnnxNode::concat(std::vector<Edge> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0]
                           : op("Concat", 1, std::move(parts), {{"axis", std::to_string(axis)}});
}

std::vector<Edge> OnnxNode::split(const Edge& e, int64_t axis, int64_t parts) {
  const Edge first = op("Split", 1, {e, integer(axis)}, {{"num_splits", std::to_string(parts)}},
                        static_cast<size_t>(parts));
  std::vector<Edge> list;
  for (int i = 0; i < parts; ++i) list.push_back(port(first, i));
  return list;
}

Edge OnnxNode::shape_of(const Edge& e) { return op("ShapeOf", 3, {e}, {{"output_type", "i64"}}); }

Edge OnnxNode::reduce(const char* type, const Edge& e, const std::vector<int64_t>& axes,
                      bool keep) {
  const bool newer = std::string_view(type) == "ReduceL1" || std::string_view(type) == "ReduceL2";
  return op(type, newer ? 4 : 1, {e, ints(axes)}, {{"keep_dims", text_of(keep)}});
}

Edge OnnxNode::matmul(const Edge& a, const Edge& b, bool turn_a, bool turn_b) {
  Edge right = b;
  const Tensor* weights = constant_value(b);
  if (weights && !turn_b && weights->type() == ElementType::f32 && shape(b).size() == 2) {
    right = writer_.turned(b);
    turn_b = true;
  }
  return op("MatMul", 1, {a, right},
            {{"transpose_a", text_of(turn_a)}, {"transpose_b", text_of(turn_b)}});
}

Edge OnnxNode::divide(const Edge& a, const Edge& b) {
  // The attribute has no effect on floats, but OpenVINO's files have it, and keys of tuning records
  // must be equal.
  return op("Divide", 1, {a, b}, {{"m_pythondiv", text_of(is_float(type(a)))}});
}

Edge OnnxNode::clamp(const Edge& e, double low, double high) {
  return op("Clamp", 1, {e}, {{"min", text_of(low)}, {"max", text_of(high)}});
}

Edge OnnxNode::along(const Edge& list, int64_t axis, int64_t rank) {
  if (count(shape(list)) == 1 && shape(list).size() <= 1)
    return shape(list).empty() ? list : reshape_to(list, ints({}));
  if (axis < 0 || axis >= rank)
    bad_node("a list of shape " + to_string(shape(list)) + " is for dimension " +
             std::to_string(axis) + " of a value of " + std::to_string(rank) + " dimensions");
  std::vector<int64_t> pattern(static_cast<size_t>(rank), 1);
  pattern[static_cast<size_t>(axis)] = -1;
  return reshape_to(list, ints(pattern));
}

}  // namespace clinfer
