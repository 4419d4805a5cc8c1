// A network as the host computes it: steps in order, without OpenCL. It is ready in milliseconds,
// where compilers take seconds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/host/operation.h"

namespace clinfer::host {

// Makes the fast version of a node, for row-major tensors of the host's types. Returns null if
// there is none.
std::unique_ptr<Operation> fast_operation(const Node& node);

// Immutable and thread-safe once it is built.
class Network {
 public:
  // Takes the graph after the reader and set_batch(). `may_go_on` throws to end the construction.
  // Throws Error{unsupported} if an operation has no version for the host.
  Network(std::unique_ptr<Graph> graph, bool unroll_loops, const std::function<void()>& may_go_on);

  // Returns the estimated time of one inference on one core.
  double seconds() const { return seconds_; }
  // Returns the name of the layer that is estimated to take longest.
  const std::string& longest() const { return longest_; }
  // Computes an inference. Floats of `inputs` are f32, and so are those of the results. Throws what
  // `work.may_go_on` throws, and an operation's Error with the layer's name in front.
  std::vector<Tensor> infer(const Work& work, std::span<const Tensor> inputs) const;

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<Operation> operation;  // null: evaluate_node() computes it
    bool sizes_vary = false;
    std::vector<size_t> inputs;    // indices of values
    std::vector<size_t> released;  // indices of values that no later step reads
    size_t first_output = 0;
  };
  void add(const Node& node);
  void keep_constants_read();
  std::vector<Tensor> run(const Step& step, const Work& work, std::span<const Tensor> inputs) const;

  std::unique_ptr<const Graph> graph_;
  std::vector<Step> steps_;
  std::vector<Tensor> constants_;   // by index of the value; empty: computed
  std::vector<size_t> parameters_;  // indices of values
  std::vector<size_t> results_;
  double seconds_ = 0, most_ = 0;
  std::string longest_;

  // Used only while the network is built.
  std::map<const Node*, size_t> first_value_;
  std::unordered_set<const Node*> varying_;
};

}  // namespace clinfer::host
