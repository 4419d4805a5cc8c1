// Appends nodes to a graph and infers their shapes at once, so that the next node can use them.
// Values that follow from shapes and constants are computed at once, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/insertion.h"
#include "engine/ir/custom_layers.h"
#include "kernels/base/float8.h"

namespace clinfer {

// Return values of attributes as the engine's text.
std::string text_of(double value);  // 17 digits, as in OpenVINO's files
std::string text_of(const std::vector<int64_t>& values);
std::string text_of(const std::vector<float>& values);
inline std::string text_of(bool value) { return value ? "true" : "false"; }

using AttributePairs = std::vector<std::pair<const char*, std::string>>;

// Returns the name of the narrow type that the file states for an edge whose values the graph holds in
// a wider one: a constant (narrow_name_of()) or a result of GraphWriter::to_float8(). Returns "" for
// others.
std::string narrow_type(const Edge& edge);

class GraphWriter {
 public:
  GraphWriter() : graph_(std::make_unique<Graph>()), inference_(*graph_) {}

  // `known` describes the outer value that the parameter of a body stands for.
  Edge parameter(const std::string& name, ElementType type, const Shape& shape,
                 Inference::Knowledge known = {});
  Edge constant(const std::string& name, Tensor value, const std::string& narrow_type = "");
  // Rounds a value to floats of 8 bits. Larger numbers become the format's largest one, or its infinity
  // or NaN unless `saturate` is set.
  Edge to_float8(const std::string& name, const Edge& value, const Float8Format& format,
                 bool saturate);
  // Returns the transposed constant matrix of f32; calls with the same matrix share one constant.
  Edge turned(const Edge& matrix);
  // Adds an operation and returns its first output. Throws the operation's errors, without the
  // node's name.
  Edge add(const std::string& name, const std::string& type, int opset, std::vector<Edge> inputs,
           const AttributePairs& attributes = {}, size_t outputs = 1,
           std::vector<std::shared_ptr<const Body>> bodies = {});
  // Adds a node that a user's kernel computes.
  Node* custom(const std::string& name, const std::string& type,
               std::shared_ptr<const CustomLayer> layer, std::vector<Edge> inputs,
               const AttributePairs& attributes, std::vector<CustomUse::Stated> stated_inputs,
               std::vector<CustomUse::Stated> stated_outputs);
  void result(const std::string& name, const Edge& value);

  // Returns the value of an edge that is constant, or determined and small; else an empty tensor.
  // Also returns an empty one if the value depends on the number of rows that an operation finds.
  Tensor known(const Edge& edge) { return inference_.exact_value(edge); }
  Inference& inference() { return inference_; }
  Graph& graph() { return *graph_; }
  std::unique_ptr<Graph> finish();

 private:
  void count_node();
  Insertion at_end(const std::string& name);

  std::unique_ptr<Graph> graph_;
  Inference inference_;
  std::unordered_map<const Node*, Edge> turned_;
  int nodes_ = 0;
};

}  // namespace clinfer
