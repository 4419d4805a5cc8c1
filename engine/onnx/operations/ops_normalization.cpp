// Translates normalisations.
#include <numeric>

#include "engine/onnx/op_table.h"

namespace clinfer {

namespace {

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  if (rank < first) bad_node("the input has too few dimensions");
  std::vector<int64_t> axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Edge mvn(OnnxNode& n, const Edge& x, const std::vector<int64_t>& axes, float epsilon) {
  return n.op("MVN", 6, {x, n.ints(axes)},
              {{"normalize_variance", "true"},
               {"eps", text_of(double{epsilon})},
               {"eps_mode", "INSIDE_SQRT"}});
}

void batch_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const float epsilon = n.float_of("epsilon", 1e-5f);
  if (n.opset() < 9 && n.int_of("spatial", 1) == 0) unsupported_node("spatial=0 is not supported");
  if (n.int_of("training_mode", 0) == 0) {
    if (n.wants(1) && n.opset() >= 14) bad_node("has further outputs and is not in training mode");
    return n.out(n.op("BatchNormInference", 5, {x, n.in(1), n.in(2), n.in(3), n.in(4)},
                      {{"epsilon", text_of(double{epsilon})}}));
  }
  std::vector<int64_t> axes = axes_from(2, n.rank(x));
  axes.insert(axes.begin(), 0);
  const Edge mean = n.reduce("ReduceMean", x, axes, false);
  const Edge off = n.subtract(x, n.along(mean, 1, n.rank(x)));
  const Edge variance = n.reduce("ReduceMean", n.multiply(off, off), axes, false);
  n.out(n.op("BatchNormInference", 5, {x, n.in(1), n.in(2), mean, variance},
             {{"epsilon", text_of(double{epsilon})}}));
  const float momentum = n.float_of("momentum", 0.9f);
  const auto running = [&](const Edge& old, const Edge& now) {
    return n.add(n.multiply(old, n.number(momentum)), n.multiply(now, n.number(1 - momentum)));
  };
  n.out(1, running(n.in(3), mean));
  n.out(2, running(n.in(4), variance));
}

void instance_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const Edge y = mvn(n, x, axes_from(2, n.rank(x)), n.float_of("epsilon", 1e-5f));
  n.out(n.add(n.multiply(y, n.along(n.in(1), 1, n.rank(x))), n.along(n.in(2), 1, n.rank(x))));
}

// Normalises the dimensions from `first` on, then applies scale and bias from the inputs.
Edge layer_normalized(OnnxNode& n, const Edge& x, int64_t first, size_t scale, float epsilon) {
  Edge y = mvn(n, x, axes_from(first, n.rank(x)), epsilon);
  if (n.has(scale)) y = n.multiply(y, n.in(scale));
  if (n.has(scale + 1)) y = n.add(y, n.in(scale + 1));
  return y;
}

void layer_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t first = n.axis(n.int_of("axis", -1), n.rank(x));
  const float epsilon = n.float_of("epsilon", 1e-5f);
  n.out(layer_normalized(n, x, first, 1, epsilon));
  if (!n.wants(1) && !n.wants(2)) return;
  const std::vector<int64_t> axes = axes_from(first, n.rank(x));
  const Edge mean = n.reduce("ReduceMean", x, axes), off = n.subtract(x, mean);
  const Edge variance = n.reduce("ReduceMean", n.multiply(off, off), axes);
  n.out(1, mean);
  n.out(2, n.divide(n.number(1), n.op("Sqrt", 1, {n.add(variance, n.number(epsilon))})));
}

Edge rms_normalized(OnnxNode& n, const Edge& x, int64_t first, float epsilon) {
  const Edge square = n.reduce("ReduceMean", n.multiply(x, x), axes_from(first, n.rank(x)));
  return n.divide(x, n.op("Sqrt", 1, {n.add(square, n.number(epsilon))}));
}

void rms_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const Edge y =
      rms_normalized(n, x, n.axis(n.int_of("axis", -1), n.rank(x)), n.float_of("epsilon", 1e-5f));
  n.out(n.has(1) ? n.multiply(y, n.in(1)) : y);
}

// Adds input, skip and an optional bias, then normalises (com.microsoft). Output 3 is the sum.
void skip_layer_normalization(OnnxNode& n) {
  const bool simple = n.type() == "SkipSimplifiedLayerNormalization";
  Edge x = n.add(n.in(0), n.in(1));
  const size_t bias = simple ? 3 : 4;
  if (n.has(bias)) x = n.add(x, n.in(bias));
  const float epsilon = n.float_of("epsilon", 1e-12f);
  const int64_t last = n.rank(x) - 1;
  if (simple)
    n.out(n.multiply(rms_normalized(n, x, last, epsilon), n.in(2)));
  else {
    Edge y = n.multiply(mvn(n, x, {last}, epsilon), n.in(2));
    n.out(n.has(3) ? n.add(y, n.in(3)) : y);
  }
  n.out(3, x);
}

// Before opset 21 there is a scale and a bias for each group, later for each channel.
void group_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t groups = n.int_of("num_groups"), channels = n.dim(x, 1);
  if (groups < 1 || channels % groups != 0)
    bad_node(std::to_string(channels) + " channels do not make " + std::to_string(groups) +
             " groups");
  const auto per_channel = [&](Edge e) {
    if (n.opset() >= 21 || groups == channels) return e;
    e = n.op("Broadcast", 3,
             {n.reshape_to(e, n.ints({-1, 1})), n.ints({groups, channels / groups})},
             {{"mode", "numpy"}});
    return n.reshape_to(e, n.ints({-1}));
  };
  n.out(n.op("GroupNormalization", 12, {x, per_channel(n.in(1)), per_channel(n.in(2))},
             {{"num_groups", std::to_string(groups)},
              {"epsilon", text_of(double{n.float_of("epsilon", 1e-5f)})}}));
}

void lp_normalization(OnnxNode& n) {
  const Edge x = n.in(0);
  const int64_t p = n.int_of("p", 2);
  if (p != 1 && p != 2) bad_node("p is " + std::to_string(p));
  const std::vector<int64_t> axes{n.axis(n.int_of("axis", -1), n.rank(x))};
  const Edge norm = n.reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, axes);
  const Edge none = n.op("Equal", 1, {norm, n.number(0)});
  n.out(n.divide(x, n.op("Select", 1, {none, n.number(1), norm})));
}

void mean_variance_normalization(OnnxNode& n) {
  const std::vector<int64_t> axes = n.ints_of("axes", std::vector<int64_t>{0, 2, 3});
  n.out(n.op("MVN", 6, {n.in(0), n.ints(n.axes(axes, n.rank(n.in(0))))},
             {{"normalize_variance", "true"}, {"eps", "1e-9"}, {"eps_mode", "OUTSIDE_SQRT"}}));
}

void lrn(OnnxNode& n) {
  n.out(n.op("LRN", 1, {n.in(0), n.ints({1})},
             {{"alpha", text_of(double{n.float_of("alpha", 1e-4f)})},
              {"beta", text_of(double{n.float_of("beta", 0.75f)})},
              {"bias", text_of(double{n.float_of("bias", 1.f)})},
              {"size", std::to_string(n.int_of("size"))}}));
}

}  // namespace

std::vector<OnnxOp> onnx_normalization_ops() {
  return {{"BatchNormalization", batch_normalization},
          {"GroupNormalization", group_normalization},
          {"InstanceNormalization", instance_normalization},
          {"LRN", lrn},
          {"LayerNormalization", layer_normalization},
          {"LpNormalization", lp_normalization},
          {"MeanVarianceNormalization", mean_variance_normalization},
          {"RMSNormalization", rms_normalization},
          {"SimplifiedLayerNormalization", rms_normalization},
          {"SkipLayerNormalization", skip_layer_normalization, kMicrosoft},
          {"SkipSimplifiedLayerNormalization", skip_layer_normalization, kMicrosoft}};
}

}  // namespace clinfer
