// Translates losses, which exporters leave at a model's end.
#include <numeric>

#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

Edge reduced(OnnxNode& n, const Edge& loss, const Edge& weights) {
  const std::string reduction = n.string_of("reduction", "mean");
  if (reduction == "none") return loss;
  std::vector<int64_t> axes(static_cast<size_t>(n.rank(loss)));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  const Edge sum = n.reduce("ReduceSum", loss, axes, false);
  if (reduction == "sum") return sum;
  if (reduction != "mean") bad_node("reduction=\"" + printable(reduction) + "\"");
  return n.divide(sum, n.reduce("ReduceSum", weights, axes, false));
}

// Computes -log_probability[n, target[n, ...], ...] * weight[target]. Targets to be ignored count
// 0.
Edge likelihood_loss(OnnxNode& n, const Edge& log_probabilities) {
  Edge target = n.convert(n.in(1), ElementType::i64);
  Edge counted;  // 0 where a target is ignored
  if (n.has_attribute("ignore_index")) {
    const Edge ignored = n.op("Equal", 1, {target, n.integer(n.int_of("ignore_index"))});
    counted = n.op("Select", 1, {ignored, n.number(0), n.number(1)});
    target = n.op("Select", 1, {ignored, n.integer(0), target});
  }
  const Edge picked = n.squeeze(
      n.op("GatherElements", 6, {log_probabilities, n.unsqueeze(target, {1})}, {{"axis", "1"}}),
      {1});
  Edge weights = n.has(2)
                     ? n.gather(n.in(2), target, 0)
                     : n.op("Broadcast", 3, {n.number(1), n.shape_of(target)}, {{"mode", "numpy"}});
  if (counted.node) weights = n.multiply(weights, counted);
  return reduced(n, n.multiply(n.op("Negative", 1, {picked}), weights), weights);
}

void negative_log_likelihood(OnnxNode& n) { n.out(likelihood_loss(n, n.in(0))); }

void softmax_cross_entropy(OnnxNode& n) {
  const Edge logs = n.op("LogSoftmax", 5, {n.in(0)}, {{"axis", "1"}});
  n.out(0, likelihood_loss(n, logs));
  n.out(1, logs);
}

}  // namespace

std::vector<OnnxOp> onnx_loss_ops() {
  return {{"NegativeLogLikelihoodLoss", negative_log_likelihood},
          {"SoftmaxCrossEntropyLoss", softmax_cross_entropy}};
}

}  // namespace clinfer
