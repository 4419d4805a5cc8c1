// What TensorIterator, Loop and If have in common with the pass that writes them out.
#pragma once

#include <functional>
#include <optional>

#include "kernels/op.h"

namespace clinfer {

// Bounds the nodes that loops go through on this thread while one of these lives, the loops inside
// of others too: where each of them runs few times only, together they can still ask for more than
// anybody waits for. The outermost one counts for all.
class IterationLimit {
 public:
  // Without shapes a model is refused; a loop that is not written out, or folded, runs as a loop.
  static constexpr int64_t kToInferShapes = int64_t{1} << 21, kToSimplify = int64_t{1} << 19,
                           kAtInference = int64_t{1} << 24;

  explicit IterationLimit(int64_t nodes);
  ~IterationLimit();
  IterationLimit(const IterationLimit&) = delete;
  IterationLimit& operator=(const IterationLimit&) = delete;

  // One more iteration of a body of so many nodes. Throws Error{unsupported} past the limit.
  void take(size_t nodes);
  // Whether the limit in force has been passed: what failed then would fail again.
  static bool passed();

 private:
  static constexpr int64_t kOfAnIteration = 16;  // nodes take about as long

  int64_t most_, left_;
};

// How often a TensorIterator or Loop runs its body; none where that depends on run-time values. The
// inputs' shapes are enough for a TensorIterator; a Loop needs the values of its first two inputs.
// Throws Error{bad_model} for a port map that does not fit the inputs.
std::optional<int64_t> iterations(const std::string& type, const Body& body,
                                  std::span<const ValueInfo> inputs);
// Goes through the iterations with the values that are known in each: counters, and what follows
// from them. `infer` sets the results from the parameters, and says whether to go on.
void follow_iterations(const Body& body, std::span<const ValueInfo> inputs,
                       const std::function<bool(std::span<const ValueInfo> parameters,
                                                std::vector<ValueInfo>& results)>& infer);
// The first element of iteration i's part along the axis of size `size`.
int64_t part_begin(const Body::Port& port, int64_t size, int64_t i);
// The value of the counter in iteration i.
Tensor number_of(const ValueInfo& counter, int64_t i);
// Which body an If runs; none where its condition is not constant.
std::optional<size_t> chosen_branch(std::span<const ValueInfo> inputs);

}  // namespace clinfer
