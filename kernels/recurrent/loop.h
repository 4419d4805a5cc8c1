// Code shared by TensorIterator, Loop and If, and the pass that unrolls them.
#pragma once

#include <functional>
#include <optional>

#include "kernels/op.h"

namespace clinfer {

// Limits the number of nodes that this thread may process during the lifetime of an object: those of
// loops, nested ones included, each as often as it is gone through, those that functions and bodies
// are written out to, and, by their work, those whose values are computed when a model is loaded. A
// few bytes of a file can ask for any number of them. Nested objects use the limit of the outermost
// one.
class IterationLimit {
 public:
  // Past kToInferShapes the model is rejected; past kToSimplify a loop is not unrolled or folded,
  // and runs as a loop; past kAtInference the inference fails.
  static constexpr int64_t kToInferShapes = int64_t{1} << 19, kToSimplify = int64_t{1} << 19,
                           kAtInference = int64_t{1} << 24;

  explicit IterationLimit(int64_t nodes);
  ~IterationLimit();
  IterationLimit(const IterationLimit&) = delete;
  IterationLimit& operator=(const IterationLimit&) = delete;

  // Counts one more copy of a body of `nodes` nodes, which an iteration, or the inference of its
  // shapes, goes through. Throws Error{unsupported} past the limit; without one nothing.
  static void take(size_t nodes);
  // Counts nodes written, or the work of values computed: this many multiplications count as a node.
  static constexpr double kOfANode = 1024;
  static void count(double nodes);
  // True if the current limit has been exceeded: a failed operation would fail again.
  static bool passed();

 private:
  // An iteration takes about as long as this number of nodes.
  static constexpr int64_t kOfAnIteration = 16;

  int64_t most_, left_;
};

// The number of iterations of a TensorIterator or Loop; none if it depends on run-time values. A
// TensorIterator needs only the inputs' shapes; a Loop needs the values of its first two inputs.
// Throws Error{bad_model} for a port map that does not fit the inputs.
std::optional<int64_t> iterations(const std::string& type, const Body& body,
                                  std::span<const ValueInfo> inputs);
// Follows the iterations with the values that are known in each: counters, and values computed from
// them. `infer` sets the results from the parameters, and returns whether to continue.
void follow_iterations(const Body& body, std::span<const ValueInfo> inputs,
                       const std::function<bool(std::span<const ValueInfo> parameters,
                                                std::vector<ValueInfo>& results)>& infer);
// The first element of iteration i's part along the axis of size `size`.
int64_t part_begin(const Body::Port& port, int64_t size, int64_t i);
// The value of the counter in iteration i.
Tensor number_of(const ValueInfo& counter, int64_t i);
// The number of the body that an If runs; none if its condition is not constant.
std::optional<size_t> chosen_branch(std::span<const ValueInfo> inputs);

}  // namespace clinfer
