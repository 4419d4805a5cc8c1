// AdaptiveAvgPool and AdaptiveMaxPool: output i of n covers the inputs floor(i * size / n) to
// ceil((i + 1) * size / n) of a dimension. With equal windows they are an ordinary pooling.
// Otherwise averages are products with constant matrices; for maxima the windows are first copied
// next to each other, with the last element of shorter ones repeated.
#include <algorithm>

#include "kernels/expand.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

struct Windows {
  int64_t size, count;  // of the input and the output
  int64_t begin(int64_t i) const { return i * size / count; }
  int64_t end(int64_t i) const { return ((i + 1) * size + count - 1) / count; }
  bool equal() const { return size % count == 0; }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, end(i) - begin(i));
    return most;
  }
};

std::vector<Windows> windows_of(Expansion& x) {
  check_inputs(x.context(), 2, 2);
  const Shape& data = x.shape(0);
  check_rank(data, 3, 5, "the data");
  const std::vector<int64_t> out = constant_ints(x.context(), 1, "the output's size");
  if (out.size() + 2 != data.size())
    fail_model("an output of " + std::to_string(out.size()) + " dimensions for the data " +
               to_string(data));
  std::vector<Windows> windows;
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] < 1 || data[2 + d] < 1 || out[d] > (1 << 24))
      fail_model("no output of size " + std::to_string(out[d]) + " from " + to_string(data));
    windows.push_back({data[2 + d], out[d]});
  }
  return windows;
}

Expansion::Pairs pooling(const std::vector<int64_t>& kernel) {
  std::string sizes, zeros;
  for (int64_t k : kernel) {
    sizes += (sizes.empty() ? "" : ",") + std::to_string(k);
    zeros += zeros.empty() ? "0" : ",0";
  }
  return {{"kernel", sizes}, {"strides", sizes}, {"pads_begin", zeros}, {"pads_end", zeros}};
}

bool all_equal(const std::vector<Windows>& windows) {
  return std::all_of(windows.begin(), windows.end(), [](const Windows& w) { return w.equal(); });
}

std::vector<int64_t> lengths(const std::vector<Windows>& windows) {
  std::vector<int64_t> kernel;
  for (const Windows& w : windows) kernel.push_back(w.longest());
  return kernel;
}

// Computes the mean over the windows of one dimension, as a product with a matrix.
size_t averaged(Expansion& x, size_t value, size_t axis, const Windows& w) {
  Tensor matrix = table({w.size, w.count});
  for (int64_t o = 0; o < w.count; ++o)
    for (int64_t i = w.begin(o); i < w.end(o); ++i)
      matrix.mutable_data<float>()[i * w.count + o] =
          1.0f / static_cast<float>(w.end(o) - w.begin(o));
  const size_t rank = x.shape(value).size();
  std::vector<int64_t> order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int64_t>(d);
  std::swap(order[axis], order[rank - 1]);
  const size_t product =
      x.step("MatMul", 1, {x.transpose(value, order), x.constant(std::move(matrix))});
  return x.transpose(product, order);
}

void average(Expansion& x) {
  const std::vector<Windows> windows = windows_of(x);
  if (all_equal(windows)) {
    Expansion::Pairs attributes = pooling(lengths(windows));
    attributes.emplace_back("exclude-pad", "true");
    x.outputs = {x.step("AvgPool", 1, {0}, attributes)};
    return;
  }
  size_t value = 0;
  for (size_t d = windows.size(); d-- > 0;)
    if (windows[d].size != windows[d].count) value = averaged(x, value, 2 + d, windows[d]);
  x.outputs = {value};
}

void maximum(Expansion& x) {
  const std::vector<Windows> windows = windows_of(x);
  const std::string type = x.context().attributes.get_string("index_element_type", "i64");
  const std::vector<int64_t> kernel = lengths(windows);
  // The source position of each element of the copied windows.
  size_t value = 0;
  std::vector<int64_t> origin{0};
  int64_t places = 1;
  for (size_t d = 0; d < windows.size(); ++d)
    places = checked_product(places, checked_product(windows[d].count, kernel[d]));
  if (places > (1 << 24))
    fail_unsupported("the windows hold " + std::to_string(places) + " places");
  for (size_t d = 0; d < windows.size(); ++d) {
    const Windows& w = windows[d];
    std::vector<int64_t> taken;
    for (int64_t o = 0; o < w.count; ++o)
      for (int64_t k = 0; k < kernel[d]; ++k)
        taken.push_back(std::min(w.begin(o) + k, w.end(o) - 1));
    std::vector<int64_t> wider;
    for (int64_t before : origin)
      for (int64_t i : taken) wider.push_back(before * w.size + i);
    origin = std::move(wider);
    if (!w.equal())
      value = x.step("Gather", 8, {value, x.ints(taken), x.ints({static_cast<int64_t>(2 + d)})});
  }
  Expansion::Pairs attributes = pooling(kernel);
  attributes.emplace_back("axis", "2");
  attributes.emplace_back("index_element_type", type);
  const size_t pooled = x.step("MaxPool", 8, {value}, attributes, 2);
  size_t indices = pooled + 1;
  if (!all_equal(windows)) {
    const size_t table =
        x.constant(Tensor::of(index_type(x.context().attributes, "index_element_type"),
                              {static_cast<int64_t>(origin.size())}, origin));
    indices = x.step("Gather", 8, {table, indices, x.ints({0})});
  }
  x.outputs = {pooled, indices};
}

}  // namespace

std::vector<OpDef> adaptive_pool_ops() {
  return {expanded_op("AdaptiveAvgPool", opset_range(8), average),
          expanded_op("AdaptiveMaxPool", opset_range(8), maximum)};
}

}  // namespace clinfer
