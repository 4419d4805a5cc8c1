// Reads windows with their pads.
#include "engine/onnx/operations/windows.h"

#include <algorithm>
#include <limits>

namespace clinfer {

namespace {

std::string ours(const std::string& auto_pad) {
  if (auto_pad == "SAME_UPPER") return "same_upper";
  if (auto_pad == "SAME_LOWER") return "same_lower";
  return auto_pad == "VALID" ? "valid" : "explicit";
}

std::vector<int64_t> numbers(const OnnxNode& n, const char* name, size_t count, int64_t otherwise) {
  const std::vector<int64_t> values = n.ints_of(name, std::vector<int64_t>(count, otherwise));
  if (values.size() != count)
    bad_node(std::string("attribute ") + name + " lists " + std::to_string(values.size()) +
             " numbers, not " + std::to_string(count));
  for (int64_t value : values)
    if (value < otherwise || value > std::numeric_limits<int32_t>::max())
      bad_node(std::string("attribute ") + name + " has the number " + std::to_string(value));
  return values;
}

}  // namespace

AttributePairs Window::attributes() const {
  return {{"strides", text_of(strides)},
          {"dilations", text_of(dilations)},
          {"pads_begin", text_of(begin)},
          {"pads_end", text_of(end)},
          {"auto_pad", ours(auto_pad)}};
}

Window window_of(const OnnxNode& n, const Edge& x, std::vector<int64_t> kernel) {
  if (n.rank(x) < 3) bad_node("needs pictures or signals, not " + to_string(n.shape(x)));
  const auto spatial = static_cast<size_t>(n.rank(x) - 2);
  Window window;
  window.kernel = std::move(kernel);
  if (window.kernel.size() != spatial)
    bad_node("a kernel of " + std::to_string(window.kernel.size()) +
             " dimensions does not fit the input " + to_string(n.shape(x)));
  window.strides = numbers(n, "strides", spatial, 1);
  window.dilations = numbers(n, "dilations", spatial, 1);
  const std::vector<int64_t> pads = numbers(n, "pads", 2 * spatial, 0);
  const auto middle = pads.begin() + static_cast<ptrdiff_t>(spatial);
  window.begin.assign(pads.begin(), middle);
  window.end.assign(middle, pads.end());
  window.auto_pad = n.string_of("auto_pad", "NOTSET");
  if (window.auto_pad != "NOTSET" && window.auto_pad != "SAME_UPPER" &&
      window.auto_pad != "SAME_LOWER" && window.auto_pad != "VALID" && !window.auto_pad.empty())
    bad_node("auto_pad=\"" + printable(window.auto_pad) + "\" is not known");
  return window;
}

std::vector<int64_t> kernel_of(const OnnxNode& n, const Edge& weights, size_t spatial) {
  const Shape& shape = n.shape(weights);
  if (shape.size() < 3 || shape.size() != spatial + 2)
    bad_node("the weights " + to_string(shape) + " do not fit the input");
  const std::vector<int64_t> own(shape.begin() + 2, shape.end());
  if (n.ints_of("kernel_shape", own) != own)
    bad_node("kernel_shape does not fit the weights " + to_string(shape));
  return own;
}

Edge grouped(OnnxNode& n, const Edge& weights, int64_t group) {
  Shape shape = n.shape(weights);
  if (group < 1 || n.dim(weights, 0) % group != 0)
    bad_node("weights " + to_string(shape) + " do not make " + std::to_string(group) + " groups");
  shape[0] /= group;
  shape.insert(shape.begin(), group);
  return n.reshape_to(weights, n.ints(shape));
}

Edge convolved(OnnxNode& n, const Edge& x, const Edge& weights, const Edge& bias) {
  const Window window = window_of(n, x, kernel_of(n, weights, static_cast<size_t>(n.rank(x) - 2)));
  const int64_t group = n.int_of("group", 1);
  Edge y = group == 1
               ? n.op("Convolution", 1, {x, weights}, window.attributes())
               : n.op("GroupConvolution", 1, {x, grouped(n, weights, group)}, window.attributes());
  if (bias.node) {
    if (n.rank(bias) != 1) bad_node("the bias must be a list");
    y = n.add(y, n.along(bias, 1, n.rank(x)));
  }
  return y;
}

Edge turned_to_channels_first(OnnxNode& n, const Edge& x) {
  std::vector<int64_t> order{0, n.rank(x) - 1};
  for (int64_t d = 1; d + 1 < n.rank(x); ++d) order.push_back(d);
  if (n.rank(x) < 3) bad_node("needs pictures or signals, not " + to_string(n.shape(x)));
  return n.transpose(x, order);
}

Edge turned_to_channels_last(OnnxNode& n, const Edge& x) {
  std::vector<int64_t> order{0};
  for (int64_t d = 2; d < n.rank(x); ++d) order.push_back(d);
  order.push_back(1);
  return n.transpose(x, order);
}

}  // namespace clinfer
