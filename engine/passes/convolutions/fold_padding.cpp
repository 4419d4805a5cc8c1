// Turns a Pad in front of a convolution or a pooling into the operation's own pads where these mean
// the same: a convolution sees zeros there, an average may or may not count them, and a maximum
// ignores them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/elementwise/elementwise.h"

namespace clinfer {

namespace {

// The padding before and after each spatial dimension of [N, C, ...].
struct Pads {
  std::vector<int64_t> begin, end;
};

// Returns the pads of a Pad that adds one constant around spatial dimensions only.
std::optional<Pads> spatial_pads(const Node& pad) {
  if (!pad.is("Pad") || pad.attributes.get_string("pad_mode") != "constant") return {};
  const Tensor *begin = constant_value(pad.inputs[1]), *end = constant_value(pad.inputs[2]);
  if (!begin || !end || pad.shape().size() < 3) return {};
  Pads pads{begin->to_ints(), end->to_ints()};
  for (auto* side : {&pads.begin, &pads.end}) {
    if (std::any_of(side->begin(), side->end(), [](int64_t p) { return p < 0; }) ||
        (*side)[0] != 0 || (*side)[1] != 0)
      return {};
    side->erase(side->begin(), side->begin() + 2);
  }
  return pads;
}

// Returns the pads that the operation already has. Those of auto_pad follow from its shapes.
Pads own_pads(const Node& node, const Shape& kernel) {
  const Shape &in = node.inputs[0].node->shape(node.inputs[0].port), &out = node.shape();
  const size_t spatial = kernel.size();
  const std::string mode = node.attributes.get_string("auto_pad", "explicit");
  const std::vector<int64_t> none(spatial, 0), one(spatial, 1);
  if (mode == "valid") return {none, none};
  if (mode != "same_upper" && mode != "same_lower")
    return {node.attributes.get_ints("pads_begin", none),
            node.attributes.get_ints("pads_end", none)};
  const auto strides = node.attributes.get_ints("strides", one),
             dilations = node.attributes.get_ints("dilations", one);
  Pads pads{none, none};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, (out[2 + i] - 1) * strides[i] + extent - in[2 + i]);
    pads.begin[i] = mode == "same_upper" ? total / 2 : total - total / 2;
    pads.end[i] = total - pads.begin[i];
  }
  return pads;
}

bool any(const Pads& pads) {
  const auto set = [](int64_t p) { return p != 0; };
  return std::any_of(pads.begin.begin(), pads.begin.end(), set) ||
         std::any_of(pads.end.begin(), pads.end.end(), set);
}

bool never_negative(const Edge& edge) {
  const Node& node = *edge.node;
  return node.is("ReLU") || node.is("Sigmoid") ||
         (node.is("Clamp") && node.attributes.get_float("min") >= 0);
}

// Returns whether the last window of a pooling without pads reaches beyond its input.
bool reaches_beyond(const Node& pooling, const Shape& kernel) {
  const Shape strides = pooling.attributes.get_ints("strides", Shape(kernel.size(), 1)),
              &in = pooling.inputs[0].node->shape(pooling.inputs[0].port);
  for (size_t i = 0; i < kernel.size(); ++i)
    if ((pooling.shape()[2 + i] - 1) * strides[i] + kernel[i] > in[2 + i]) return true;
  return false;
}

void fold(Node* node) {
  const bool grouped = node->is("GroupConvolution"), maximum = node->is("MaxPool"),
             average = node->is("AvgPool");
  if (!(grouped || maximum || average || node->is("Convolution")) || node->outputs.size() != 1)
    return;
  const Node& pad = *node->inputs[0].node;
  const auto more = spatial_pads(pad);
  if (!more) return;
  const Tensor* fill = pad.inputs.size() > 3 ? constant_value(pad.inputs[3]) : nullptr;
  if (pad.inputs.size() > 3 && (!fill || fill->elements() != 1)) return;
  const float value = fill ? fill->to_floats()[0] : 0;

  Shape kernel;
  if (maximum || average) {
    kernel = node->attributes.get_ints("kernel");
  } else {
    const Shape& filter = node->inputs[1].node->shape(node->inputs[1].port);
    kernel.assign(filter.begin() + 2 + grouped, filter.end());
  }
  Pads pads = own_pads(*node, kernel);
  Node trial = *node;
  if (maximum) {
    // The maximum stays the same only if padded values never win (the lowest float, or 0 beside
    // values that are not negative) and every window sees some of the input.
    if (value > std::numeric_limits<float>::lowest() / 2 &&
        !(value == 0 && never_negative(pad.inputs[0])))
      return;
    for (int64_t dilation : node->attributes.get_ints("dilations", Shape(kernel.size(), 1)))
      if (dilation != 1) return;
    const Shape strides = node->attributes.get_ints("strides", Shape(kernel.size(), 1)),
                &in = pad.inputs[0].node->shape(pad.inputs[0].port);
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t begin = pads.begin[i] + more->begin[i];
      if (begin >= kernel[i] || (node->shape()[2 + i] - 1) * strides[i] - begin >= in[2 + i])
        return;
    }
  } else if (value != 0) {
    return;
  } else if (average) {
    // The Pad's zeros count in the average, so the operation's own pads must count as well.
    if (node->attributes.get_bool("exclude-pad") && any(pads)) return;
    // A window beyond the end, due to rounding up, counts as a whole only if the operation has
    // pads.
    if (!any(pads) && reaches_beyond(*node, kernel)) return;
    trial.attributes.set("exclude-pad", "false");
  }
  for (size_t i = 0; i < kernel.size(); ++i) {
    pads.begin[i] += more->begin[i];
    pads.end[i] += more->end[i];
  }
  trial.inputs.set(0, pad.inputs[0]);
  trial.attributes.set("auto_pad", "explicit");
  trial.attributes.set("pads_begin", list_text(pads.begin));
  trial.attributes.set("pads_end", list_text(pads.end));
  try {
    infer_node_shapes(trial);
  } catch (const Error&) {
    return;  // larger than the operation's pads may be
  }
  if (trial.shape() == node->shape()) *node = std::move(trial);
}

// Moves the Pad behind a FakeQuantize that keeps zeros, so that the quantised tensor is padded and
// its readers see the Pad.
void quantize_before(Graph& graph, Node* node) {
  if (!node->is("FakeQuantize")) return;
  const Edge padded = node->inputs[0];
  const Node& pad = *padded.node;
  if (!pad.is("Pad") || pad.attributes.get_string("pad_mode") != "constant" ||
      graph.use_count(padded) != 1)
    return;
  const Tensor* fill = pad.inputs.size() > 3 ? constant_value(pad.inputs[3]) : nullptr;
  if (pad.inputs.size() > 3 && (!fill || fill->elements() != 1 || fill->to_floats()[0] != 0))
    return;
  std::array<float, 4> limits{};
  for (size_t i = 0; i < limits.size(); ++i) {
    const Tensor* limit = constant_value(node->inputs[i + 1]);
    if (!limit || limit->elements() != 1 || limit->shape().size() > pad.shape().size()) return;
    limits[i] = limit->to_floats()[0];
  }
  const float zero = fake_quantize(0, limits[0], limits[1], limits[2], limits[3],
                                   static_cast<float>(node->attributes.get_int("levels")), 0);
  if (std::fabs(zero) > 1e-6f * std::fabs(limits[3] - limits[2])) return;
  std::vector<Edge> inputs = node->inputs;
  inputs[0] = pad.inputs[0];
  const Edge quantized =
      Insertion(graph, node).op(node->type, node->opset, inputs, node->attributes.all());
  node->type = pad.type;
  node->opset = pad.opset;
  node->def = pad.def;
  node->attributes = pad.attributes;
  node->inputs = pad.inputs;
  node->inputs.set(0, quantized);
}

}  // namespace

void fold_padding(Graph& graph, const PassContext&) {
  const std::vector<Node*> nodes = nodes_of(graph);
  for (Node* node : nodes) quantize_before(graph, node);
  for (Node* node : nodes) fold(node);
  graph.remove_dead();
}

}  // namespace clinfer
