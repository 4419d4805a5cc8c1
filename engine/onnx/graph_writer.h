// Writes the graph's nodes one after the other. Shapes are inferred at once, so that they are known
// while the next node is written, and so are values that follow from shapes and constants.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/insertion.h"
#include "engine/ir/custom_layers.h"

namespace clinfer {

// Values of attributes as the engine's text.
std::string text_of(double value);  // 17 digits, as OpenVINO's files have them
std::string text_of(const std::vector<int64_t>& values);
std::string text_of(const std::vector<float>& values);
inline std::string text_of(bool value) { return value ? "true" : "false"; }

using AttributePairs = std::vector<std::pair<const char*, std::string>>;

class GraphWriter {
 public:
  GraphWriter() : graph_(std::make_unique<Graph>()), inference_(*graph_) {}

  // `known`: of the value around the body of a loop or branch that the parameter stands for.
  Edge parameter(const std::string& name, ElementType type, const Shape& shape,
                 Inference::Knowledge known = {});
  Edge constant(const std::string& name, Tensor value);
  // A constant matrix of f32 with its columns as rows; the same one each time.
  Edge turned(const Edge& matrix);
  // Gives the first output. Throws what the operation throws, without a name.
  Edge add(const std::string& name, const std::string& type, int opset, std::vector<Edge> inputs,
           const AttributePairs& attributes = {}, size_t outputs = 1,
           std::vector<std::shared_ptr<const Body>> bodies = {});
  // A node that a user's kernel computes.
  Node* custom(const std::string& name, const std::string& type,
               std::shared_ptr<const CustomLayer> layer, std::vector<Edge> inputs,
               const AttributePairs& attributes, std::vector<CustomUse::Stated> stated_inputs,
               std::vector<CustomUse::Stated> stated_outputs);
  void result(const std::string& name, const Edge& value);

  // The value of an edge, where it is determined and small, or a constant; else empty. Also empty
  // where it depends on how many rows an operation finds.
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
