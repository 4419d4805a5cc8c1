// Appends nodes in a topological order.
#include "engine/onnx/graph_writer.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "kernels/recurrent/loop.h"

namespace clinfer {

namespace {

// A limit, because nested functions can multiply nodes without bound.
constexpr int kMostNodes = 1 << 18;

template <typename List, typename Text>
std::string joined(const List& values, Text&& text) {
  std::string list;
  for (const auto value : values) list += (list.empty() ? "" : ",") + text(value);
  return list;
}

// Transposes a matrix in blocks that fit in the cache.
Tensor columns_as_rows(const Tensor& matrix) {
  constexpr int64_t kBlock = 32;
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result = Tensor::allocate(ElementType::f32, {columns, rows});
  const auto* from = matrix.data<float>();
  auto* to = result.mutable_data<float>();
  for (int64_t r = 0; r < rows; r += kBlock)
    for (int64_t c = 0; c < columns; c += kBlock)
      for (int64_t i = r; i < std::min(r + kBlock, rows); ++i)
        for (int64_t j = c; j < std::min(c + kBlock, columns); ++j)
          to[j * rows + i] = from[i * columns + j];
  return result;
}

constexpr const char* kNarrowType = "type";  // the attribute of ToFloat8, and of constants

}  // namespace

std::string narrow_type(const Edge& edge) {
  if (!edge.node->is("ToFloat8") && !edge.node->is("Constant")) return "";
  return edge.node->attributes.get_string(kNarrowType, "");
}

std::string text_of(double value) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general,
                                std::numeric_limits<double>::max_digits10)
                      .ptr};
}

std::string text_of(const std::vector<int64_t>& values) {
  return joined(values, [](int64_t value) { return std::to_string(value); });
}

std::string text_of(const std::vector<float>& values) {
  return joined(values, [](float value) {
    char buffer[64];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  });
}

void GraphWriter::count_node() {
  if (++nodes_ > kMostNodes)
    throw Error(ErrorCode::unsupported,
                "the model would have more than " + std::to_string(kMostNodes) + " operations");
  IterationLimit::count(1);
}

Insertion GraphWriter::at_end(const std::string& name) {
  count_node();
  return {*graph_, nullptr, name, &inference_};
}

Edge GraphWriter::parameter(const std::string& name, ElementType type, const Shape& shape,
                            Inference::Knowledge known) {
  const Edge edge = at_end(name).parameter(type, shape);
  inference_.set_knowledge(*edge.node, std::move(known));
  return edge;
}

Edge GraphWriter::constant(const std::string& name, Tensor value, const std::string& narrow_type) {
  const Edge edge = at_end(name).constant(std::move(value));
  if (!narrow_type.empty()) edge.node->attributes.set(kNarrowType, narrow_type);
  return edge;
}

Edge GraphWriter::to_float8(const std::string& name, const Edge& value, const Float8Format& format,
                            bool saturate) {
  return add(name, "ToFloat8", 1, {value},
             {{kNarrowType, std::string(format.name)}, {"saturate", text_of(saturate)}});
}

Edge GraphWriter::turned(const Edge& matrix) {
  const auto [known, is_new] = turned_.emplace(matrix.node, Edge{});
  if (is_new) known->second = constant(matrix.node->name, columns_as_rows(matrix.node->constant));
  return known->second;
}

Edge GraphWriter::add(const std::string& name, const std::string& type, int opset,
                      std::vector<Edge> inputs, const AttributePairs& attributes, size_t outputs,
                      std::vector<std::shared_ptr<const Body>> bodies) {
  Insertion::AttributeTexts texts;
  for (const auto& [key, value] : attributes) texts[key] = value;
  return at_end(name).op(type, opset, std::move(inputs), texts, outputs, std::move(bodies));
}

Node* GraphWriter::custom(const std::string& name, const std::string& type,
                          std::shared_ptr<const CustomLayer> layer, std::vector<Edge> inputs,
                          const AttributePairs& attributes,
                          std::vector<CustomUse::Stated> stated_inputs,
                          std::vector<CustomUse::Stated> stated_outputs) {
  count_node();
  Node* node = graph_->insert(nullptr, type, name);
  node->opset = 0;
  for (const auto& [key, value] : attributes) node->attributes.set(key, value);
  node->inputs = std::move(inputs);
  node->outputs.resize(stated_outputs.size());
  set_custom(*node, std::move(layer), type, std::move(stated_inputs), std::move(stated_outputs));
  inference_.infer(*node);
  return node;
}

void GraphWriter::result(const std::string& name, const Edge& value) { at_end(name).result(value); }

std::unique_ptr<Graph> GraphWriter::finish() {
  graph_->remove_dead();
  return std::move(graph_);
}

}  // namespace clinfer
