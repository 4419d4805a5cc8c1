// Code shared by TensorIterator, Loop and If, and the pass that unrolls them.
#pragma once

#include <functional>
#include <optional>

#include "kernels/op.h"

namespace clinfer {

// Limits how many nodes this thread may process during the lifetime of an object: nodes of loops,
// including nested ones, each as often as it is processed; nodes that functions and bodies are
// expanded to; and, by their work, nodes whose values are computed when a model is loaded. A few
// bytes of a file can ask for any number of them. Nested objects use the limit of the outermost
// one.
class IterationLimit {
 public:
  // Beyond kToInferShapes the model is rejected; beyond kToSimplify a loop is not unrolled or
  // folded, and runs as a loop; beyond kAtInference the inference fails.
  static constexpr int64_t kToInferShapes = int64_t{1} << 19, kToSimplify = int64_t{1} << 19,
                           kAtInference = int64_t{1} << 24;
  // So many more for each node that the model's file states, in bodies as well.
  static constexpr int64_t kForEachStated = 32;

  explicit IterationLimit(int64_t nodes);
  ~IterationLimit();
  IterationLimit(const IterationLimit&) = delete;
  IterationLimit& operator=(const IterationLimit&) = delete;

  // Counts a body of `nodes` nodes once more, for an iteration or the inference of its shapes.
  // Throws Error{unsupported} beyond the limit. Does nothing without a limit.
  static void take(size_t nodes);
  // Counts nodes that are written, or the work of values that are computed: kOfANode
  // multiplications count as a node.
  static constexpr double kOfANode = 1024;
  static void count(double nodes);
  // Returns whether the current limit was exceeded, so that a failed operation would fail again.
  static bool passed();

 private:
  // The number of nodes that take about as long as the overhead of an iteration.
  static constexpr int64_t kOfAnIteration = 16;

  int64_t most_, left_;
};

// Returns the number of iterations of a TensorIterator or Loop; nothing if it depends on run-time
// values. A TensorIterator needs only the inputs' shapes; a Loop needs the values of its first two
// inputs. Throws Error{bad_model} for a port map that does not fit the inputs.
std::optional<int64_t> iterations(const std::string& type, const Body& body,
                                  std::span<const ValueInfo> inputs);
// Follows the iterations with the values that are known in each: counters, and values computed from
// them. `infer` sets the results from the parameters, and returns whether to continue.
void follow_iterations(const Body& body, std::span<const ValueInfo> inputs,
                       const std::function<bool(std::span<const ValueInfo> parameters,
                                                std::vector<ValueInfo>& results)>& infer);
// Returns the first element of iteration i's part along the axis of size `size`.
int64_t part_begin(const Body::Port& port, int64_t size, int64_t i);
// Returns the value of the counter in iteration i.
Tensor number_of(const ValueInfo& counter, int64_t i);
// Returns the index of the body that an If runs; nothing if its condition is not constant.
std::optional<size_t> chosen_branch(std::span<const ValueInfo> inputs);

}  // namespace clinfer
