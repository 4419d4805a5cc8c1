// Lets quantised models compute in integers, or in floats of 8 bits. A FakeQuantize becomes
// Quantize (floats to bytes) and Dequantize (bytes to floats), and so does a ToFloat8 of f8e4m3.
// Operations that only move values then move bytes. Convolutions and products whose weights lie on
// a grid of at most 256 values compute with the bytes, and apply a factor per output channel to the
// exact sums; with f8e4m3 the weights must be numbers of this format times a factor. Where no
// operation computes with the bytes in the end, the FakeQuantize or ToFloat8 stays. This pass is
// for devices with an instruction that adds up products of bytes; others keep the floats.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "engine/graph/insertion.h"
#include "engine/passes/passes.h"
#include "kernels/base/float8.h"
#include "kernels/elementwise/elementwise.h"

namespace clinfer {

namespace {

bool close(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return std::fabs(x - y) <= 1e-6f * std::fabs(x); });
}

// The meaning of bytes: the value is (byte - zero) * step. Step and zero have one element, or one
// per channel (dimension 1). Bytes may be numbers of f8e4m3, whose zero is 0.
struct Grid {
  std::vector<float> step, zero;
  ElementType type = ElementType::u8;
  bool same(const Grid& other) const {
    return type == other.type && zero == other.zero && close(step, other.step);
  }
};

// A FakeQuantize whose results fit bytes: byte = round(x * scale + shift) - lowest, in 0..levels-1.
struct ByteRange {
  Grid grid;
  std::vector<float> scale, shift;  // of the same size as the steps
  int64_t levels = 256, lowest = 0;
};

// Returns the value of a constant, or its values per channel of a tensor of `shape`; nothing if it
// varies in another way.
std::vector<float> values_of(const Edge& edge, const Shape& shape) {
  const Tensor* constant = constant_value(edge);
  if (!constant || constant->elements() == 0) return {};
  const std::vector<float> values = constant->to_floats();
  if (std::all_of(values.begin(), values.end(), [&](float v) { return v == values[0]; }))
    return {values[0]};
  const Shape& own = constant->shape();
  if (shape.size() < 2) return {};
  const size_t at = 1 + own.size() - std::max(shape.size(), own.size());
  const bool by_channel = own.size() <= shape.size() && shape.size() < own.size() + 2 &&
                          own[at] == shape[1] && constant->elements() == shape[1];
  return by_channel ? values : std::vector<float>();
}

// The largest distance from the grid, as a share of a step. Limits that were rounded to f16 are off
// by an eighth at most.
constexpr float kOnGrid = 0.15f;

std::optional<ByteRange> byte_range(const Node& node) {
  std::array<std::vector<float>, 4> limits;
  size_t channels = 1;
  for (size_t i = 0; i < 4; ++i) {
    limits[i] = values_of(node.inputs[i + 1], node.shape());
    if (limits[i].empty()) return {};
    channels = std::max(channels, limits[i].size());
  }
  for (auto& limit : limits)
    if (limit.size() == 1) limit.resize(channels, limit[0]);
  ByteRange range;
  range.levels = node.attributes.get_int("levels");
  const float last = static_cast<float>(range.levels - 1);
  for (size_t c = 0; c < channels; ++c) {
    const float in_low = limits[0][c], in_high = limits[1][c], out_low = limits[2][c],
                out_high = limits[3][c];
    if (range.levels > 256 || !(in_high > in_low) || !(out_high > out_low)) return {};
    const float scale = last / (in_high - in_low), step = (out_high - out_low) / last,
                zero = -out_low / step;
    if (!std::isfinite(scale) || !std::isfinite(zero)) return {};
    range.scale.push_back(scale);
    range.shift.push_back(-in_low * scale);
    range.grid.step.push_back(step);
    const float whole = std::nearbyint(zero);
    if (std::fabs(zero - whole) > kOnGrid || whole < 0 || whole > last) return {};
    range.grid.zero.push_back(whole);
  }
  const auto stated = static_cast<float>(node.attributes.get_float(kQuantizationStep, 0));
  if (stated > 0) {  // a single step: halves are rounded before the zero point is added
    if (channels != 1) return {};
    range.scale = {1 / stated};
    range.shift = {0};
    range.lowest = -static_cast<int64_t>(range.grid.zero[0]);
  }
  return range;
}

// Finds the coarsest grid on which all values lie less than 256 steps apart, and returns its step.
// `integers` gets the values in steps; they exceed bytes where the file's grid had a zero point of
// its own.
std::optional<float> find_grid(std::span<const float> values, std::vector<float>& integers) {
  constexpr float kExact = 2e-3f;  // as a share of a step
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto whole = [](float v) { return std::nearbyint(v) == v; };
  if (*high - *low <= 255 && std::max(*high, -*low) <= 255 &&
      std::all_of(values.begin(), values.end(), whole)) {  // the file's own integers
    integers.insert(integers.end(), values.begin(), values.end());
    return 1.f;
  }
  float largest = 0;
  for (float v : values) largest = std::max(largest, std::fabs(v));
  if (largest == 0) {
    integers.insert(integers.end(), values.size(), 0);
    return 1.f;
  }
  for (int steps = 1; steps <= 255; ++steps) {
    const float factor = static_cast<float>(steps) / largest;
    if (std::nearbyint(*high * factor) - std::nearbyint(*low * factor) > 255) break;
    const auto fits = [&](float v) {
      return std::fabs(v * factor - std::nearbyint(v * factor)) <= kExact;
    };
    if (!std::all_of(values.begin(), values.end(), fits)) continue;
    for (float v : values) integers.push_back(std::nearbyint(v * factor));
    return 1 / factor;
  }
  return {};
}

// Finds a step of which all values are multiples by numbers of f8e4m3, and returns it. `numbers`
// gets these. The largest one has the largest exponent, so that only its mantissa is to be found.
std::optional<float> find_float8_step(std::span<const float> values, std::vector<float>& numbers) {
  constexpr float kExact = 1e-3f;  // as a share of a number, which may have been rounded to f16
  float largest = 0;
  for (float v : values) largest = std::max(largest, std::fabs(v));
  float best = 0, least = kExact;
  for (const float most : {448.f, 416.f, 384.f, 352.f, 320.f, 288.f, 256.f, 240.f}) {
    const float step = largest / most;
    if (!(step > 0) || !std::isfinite(1 / step)) continue;
    float off = 0;
    for (float v : values) {
      const float number = nearest_float8(v / step, kFloat8E4M3);
      if (v != 0) off = std::max(off, std::fabs(number * step / v - 1));
    }
    if (off < least) best = step, least = off;
  }
  if (best == 0 && largest > 0) return {};
  const float step = largest > 0 ? best : 1;
  for (float v : values) numbers.push_back(nearest_float8(v / step, kFloat8E4M3));
  return step;
}

class Quantizer {
 public:
  Quantizer(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  void run() {
    for (Node* node : nodes_of(graph_)) {
      if (node->is("FakeQuantize"))
        split(node);
      else if (node->is("ToFloat8"))
        store_float8(node);
      else if (moves(*node))
        move(node);
      else if (node->is("ReLU"))
        drop_relu(node);
      else if (node->is("Multiply") || node->is("Divide"))
        scale(node);
      else
        absorb(node);
    }
    keep_unused_bytes_as_floats();
    one_dequantize_each();
  }

 private:
  struct Bytes {
    Grid grid;
    Edge floats;  // the Dequantize's value, computed without bytes
  };
  using Output = std::pair<const Node*, int>;
  // The floats, levels, lowest, scale and shift of a Quantize.
  using QuantizedKey = std::tuple<Output, int64_t, int64_t, std::vector<float>, std::vector<float>>;

  static QuantizedKey key_of(const Edge& floats, const ByteRange& range) {
    const auto once_if_equal = [](std::vector<float> values) {
      if (std::equal(values.begin() + 1, values.end(), values.begin())) values.resize(1);
      return values;
    };
    return {{floats.node, floats.port},
            range.levels,
            range.lowest,
            once_if_equal(range.scale),
            once_if_equal(range.shift)};
  }

  // Makes a constant of one number, or of one per channel of a tensor of `rank` dimensions.
  Edge numbers(const Node* before, const std::vector<float>& values, size_t rank) {
    Shape shape(values.size() == 1 ? 0 : rank, 1);
    if (values.size() > 1) shape[1] = static_cast<int64_t>(values.size());
    return Insertion(graph_, before, "").floats(shape, values);
  }

  // Returns the bytes behind an edge of floats, if it is a Dequantize that this pass made.
  const Bytes* bytes_of(const Edge& edge) const {
    const auto found = bytes_.find(edge.node);
    return found == bytes_.end() ? nullptr : &found->second;
  }

  // Replaces all uses of `floats` by a Dequantize of `bytes`.
  void stand_in(const Edge& floats, const Edge& bytes, const Grid& grid, const Node* before) {
    const size_t rank = floats.node->shape(floats.port).size();
    std::vector<float> shift = grid.step;
    for (size_t c = 0; c < shift.size(); ++c) shift[c] *= -grid.zero[c];
    const Edge made =
        Insertion(graph_, before, floats.node->name)
            .op("Dequantize", 1,
                {bytes, numbers(before, grid.step, rank), numbers(before, shift, rank)});
    graph_.replace_uses(floats, made);
    bytes_[made.node] = {grid, floats};
  }

  void split(Node* node) {
    const auto range = byte_range(*node);
    if (!range || !is_float(node->outputs[0].type)) return;
    const Node* next = graph_.next(node);
    if (const Bytes* from = bytes_of(node->inputs[0]); from && from->grid.same(range->grid)) {
      bool keeps = true;
      for (size_t c = 0; c < range->scale.size(); ++c)
        keeps &= std::fabs(from->grid.step[c] * range->scale[c] - 1) < 1e-5f &&
                 std::fabs(range->shift[c] - static_cast<float>(range->lowest) -
                           from->grid.zero[c]) < kOnGrid;
      // The input is quantised in the same way already.
      if (keeps) return stand_in({node, 0}, node->inputs[0].node->inputs[0], range->grid, next);
    }
    const auto made = quantized_.find(key_of(node->inputs[0], *range));
    const Edge bytes = made != quantized_.end()
                           ? made->second
                           : quantized(node->inputs[0], *range, node->name, next);
    stand_in({node, 0}, bytes, range->grid, next);
  }

  // Stores what a ToFloat8 rounds in 8 bits.
  void store_float8(Node* node) {
    if (node->attributes.get_string("type") != kFloat8E4M3.name || !node->tail.empty() ||
        !node->attributes.get_bool("saturate", false) || !is_float(node->outputs[0].type))
      return;
    const Node* next = graph_.next(node);
    const Grid grid{{1}, {0}, ElementType::f8e4m3};
    // The input's values may be such numbers already.
    if (const Bytes* from = bytes_of(node->inputs[0]); from && from->grid.same(grid))
      return stand_in({node, 0}, node->inputs[0].node->inputs[0], grid, next);
    Edge floats = node->inputs[0];
    std::vector<float> scale{1};
    if (const auto by = factor_of(*floats.node)) {
      scale = {by->factor};
      floats = by->value;
    }
    const Edge stored =
        Insertion(graph_, next, node->name)
            .op("Quantize", 1, {floats, numbers(next, scale, 0), numbers(next, {0}, 0)},
                {{"type", std::string(kFloat8E4M3.name)}});
    stand_in({node, 0}, stored, grid, next);
  }

  // A value that a node multiplies or divides by one number above 0.
  struct Factor {
    Edge value;
    float factor;
  };
  static std::optional<Factor> factor_of(const Node& node) {
    const bool divides = node.is("Divide");
    if (!(divides || node.is("Multiply")) || node.inputs.size() != 2 || !node.tail.empty())
      return {};
    const size_t side = !divides && constant_value(node.inputs[0]) ? 1 : 0;
    const Edge& value = node.inputs[side];
    const Tensor* number = constant_value(node.inputs[1 - side]);
    if (!number || !is_float(number->type()) || number->elements() != 1 ||
        node.shape() != value.node->shape(value.port))
      return {};
    const float factor = divides ? 1 / number->to_floats()[0] : number->to_floats()[0];
    if (!(factor > 0) || !std::isfinite(factor)) return {};
    return Factor{value, factor};
  }

  // Returns the picture behind factors and summands that are one number, or one per channel, and
  // puts these into the range. Returns the floats themselves if they are made otherwise.
  Edge behind_scales(const Edge& floats, ByteRange& range) const {
    ByteRange found = range;
    Edge at = floats;
    while (graph_.use_count(at) == 1 && !at.node->is("Parameter")) {
      const Node& node = *at.node;
      const bool adds = node.is("Add");
      if (!(adds || node.is("Multiply")) || node.inputs.size() != 2 || !node.tail.empty() ||
          node.attributes.has(kRequantizes))
        return floats;
      const size_t side = constant_value(node.inputs[0]) ? 1 : 0;
      const Edge& value = node.inputs[side];
      const std::vector<float> by = values_of(node.inputs[1 - side], node.shape());
      if (by.empty() || node.shape() != value.node->shape(value.port)) return floats;
      const size_t channels = std::max(by.size(), found.scale.size());
      if (found.scale.size() != channels) found.scale.resize(channels, found.scale[0]);
      if (found.shift.size() != channels) found.shift.resize(channels, found.shift[0]);
      for (size_t c = 0; c < channels; ++c) {
        const float number = by[by.size() == 1 ? 0 : c];
        if (!std::isfinite(number)) return floats;
        if (adds)
          found.shift[c] += number * found.scale[c];
        else
          found.scale[c] *= number;
      }
      at = value;
    }
    if (!at.node->is("Parameter")) return floats;
    range = found;
    return at;
  }

  // Returns bytes made of `floats`. A MaxPool that nothing else reads is computed from the bytes
  // instead.
  Edge quantized(Edge floats, ByteRange range, const std::string& name, const Node* next) {
    const bool no_shift = range.lowest == 0 && std::all_of(range.shift.begin(), range.shift.end(),
                                                           [](float s) { return s == 0; });
    std::vector<const Node*> pools;  // from the last pool to the first
    for (; graph_.use_count(floats) == 1; floats = floats.node->inputs[0]) {
      const Node& producer = *floats.node;
      if (producer.is("MaxPool") && producer.outputs.size() == 1 && producer.tail.empty())
        pools.push_back(&producer);
      else if (!producer.is("ReLU") || !no_shift)  // bytes without a shift hold no negative values
        break;
    }
    const QuantizedKey key = key_of(floats, range);
    floats = behind_scales(floats, range);
    const size_t rank = floats.node->shape(floats.port).size();
    Insertion::AttributeTexts attributes{{"levels", std::to_string(range.levels)}};
    if (range.lowest != 0) attributes["lowest"] = std::to_string(range.lowest);
    Edge bytes =
        Insertion(graph_, next, name)
            .op("Quantize", 1,
                {floats, numbers(next, range.scale, rank), numbers(next, range.shift, rank)},
                attributes);
    quantized_[key] = bytes;
    for (; !pools.empty(); pools.pop_back()) {
      Node trial = *pools.back();
      trial.inputs.set(0, bytes);
      trial.outputs[0].type = ElementType::u8;
      bytes = {Insertion(graph_, next, "").copy(trial), 0};
    }
    return bytes;
  }

  // An Interpolate whose values are all values of its input.
  static bool takes_nearest(const Node& node) {
    const auto no_pads = [&](const char* name) {
      const auto pads = node.attributes.get_ints(name, std::vector<int64_t>{});
      return std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
    };
    return node.attributes.get_string("mode", "") == "nearest" && no_pads("pads_begin") &&
           no_pads("pads_end");
  }

  static bool moves(const Node& node) {
    if (!node.def || node.inputs.empty() || !node.tail.empty()) return false;
    if (node.is("MaxPool")) return node.outputs.size() == 1;
    if (node.is("Interpolate")) return takes_nearest(node);
    return node.def->view != nullptr || node.is("Concat");
  }

  void move(Node* node) {
    const size_t data = node->is("Concat") ? node->inputs.size() : 1;
    const Bytes* first = bytes_of(node->inputs[0]);
    if (!first || (first->grid.step.size() != 1 && !node->is("MaxPool"))) return;
    const Grid grid = first->grid;
    std::vector<Edge> inputs = node->inputs;
    for (size_t i = 0; i < data; ++i) {
      const Bytes* bytes = bytes_of(inputs[i]);
      if (!bytes || !bytes->grid.same(grid)) return;
      inputs[i] = inputs[i].node->inputs[0];
    }
    Node trial = *node;
    trial.inputs = inputs;
    for (NodeOutput& output : trial.outputs) output.type = grid.type;
    if (!trial.def->view && !trial.is("Concat") &&
        accepting_families(*trial.def, describe(trial), context_.traits).empty())
      return;
    const Node* next = graph_.next(node);
    Node* moved = Insertion(graph_, next, "").copy(trial);
    for (size_t port = 0; port < node->outputs.size(); ++port)
      stand_in({node, static_cast<int>(port)}, {moved, static_cast<int>(port)}, grid, next);
  }

  // Drops a ReLU of bytes whose zero is 0, since they hold no negative values.
  void drop_relu(Node* node) {
    const Bytes* from = bytes_of(node->inputs[0]);
    if (from && from->grid.type == ElementType::u8 &&
        from->grid.zero == std::vector<float>(from->grid.zero.size(), 0))
      stand_in({node, 0}, node->inputs[0].node->inputs[0], from->grid, graph_.next(node));
  }

  // Scales the grid of bytes that are multiplied or divided by one number.
  void scale(Node* node) {
    const auto by = factor_of(*node);
    const Bytes* from = by ? bytes_of(by->value) : nullptr;
    if (!from) return;
    Grid grid = from->grid;
    for (float& step : grid.step) step *= by->factor;
    stand_in({node, 0}, by->value.node->inputs[0], grid, graph_.next(node));
  }

  void absorb(Node* node) {
    const bool product = node->is("MatMul"), grouped = node->is("GroupConvolution");
    if (!(product || grouped || node->is("Convolution")) || !node->tail.empty()) return;
    const Bytes* from = bytes_of(node->inputs[0]);
    const Tensor* weights = constant_value(node->inputs[1]);
    if (!from || !weights || !is_float(weights->type()) ||
        (product && weights->shape().size() != 2))
      return;

    const bool by_column = product && !node->attributes.get_bool("transpose_b", false);
    const Shape& shape = weights->shape();
    const int64_t channels = by_column ? shape[1] : grouped ? shape[0] * shape[1] : shape[0];
    const int64_t depth = weights->elements() / channels;
    const bool depthwise = grouped && shape[1] == 1 && shape[2] == 1;
    // A sum over channels needs the same step for all.
    if (from->grid.step.size() != 1 && !depthwise) return;
    const std::vector<float> plain = weights->to_floats();
    const bool float8 = from->grid.type == ElementType::f8e4m3;
    std::vector<float> on_grid, factors;
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<float> row(static_cast<size_t>(depth));
      for (int64_t i = 0; i < depth; ++i)
        row[i] = plain[by_column ? i * channels + c : c * depth + i];
      const auto step = float8 ? find_float8_step(row, on_grid) : find_grid(row, on_grid);
      if (!step) return;
      factors.push_back(*step *
                        from->grid.step[from->grid.step.size() == 1 ? 0 : static_cast<size_t>(c)]);
    }
    std::vector<float> in_order(on_grid.size());
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < depth; ++i)
        in_order[by_column ? i * channels + c : c * depth + i] = on_grid[c * depth + i];
    const bool fit =
        std::all_of(on_grid.begin(), on_grid.end(), [](float w) { return w >= -128 && w <= 127; });
    const ElementType stored = float8 ? ElementType::f8e4m3
                               : fit  ? ElementType::i8
                                      : ElementType::i16;
    Tensor grid = Tensor::of<float>(stored, shape, in_order);

    const Node* next = graph_.next(node);
    Node trial = *node;
    trial.inputs = {node->inputs[0].node->inputs[0],
                    Insertion(graph_, next, node->inputs[1].node->name).constant(std::move(grid))};
    std::string zeros;
    for (float zero : from->grid.zero)
      zeros += (zeros.empty() ? "" : ",") + std::to_string(static_cast<int>(zero));
    if (!float8) trial.attributes.set("zero_point", zeros);
    if (accepting_families(*trial.def, describe(trial), context_.traits).empty()) return;
    Insertion add(graph_, next, node->name);
    const Edge sums{add.copy(trial), 0};
    Shape factor_shape(node->shape().size(), 1);
    factor_shape[product ? factor_shape.size() - 1 : 1] = channels;
    const bool scales =
        std::any_of(factors.begin(), factors.end(), [](float factor) { return factor != 1; });
    const Edge scaled =
        scales ? add.op("Multiply", 1, {sums, add.floats(factor_shape, factors)}) : sums;
    scaled.node->outputs[0].names = node->outputs[0].names;
    graph_.replace_uses({node, 0}, scaled);
  }

  // Returns the place of the node that computes the values, which quantisation only rounds.
  static size_t computed_at(const Node* node, const std::map<const Node*, size_t>& places) {
    while (node->is("FakeQuantize") || node->is("ToFloat8") || node->is("Quantize") ||
           node->is("Dequantize"))
      node = node->inputs[0].node;
    const auto found = places.find(node);
    return found == places.end() ? 0 : found->second;
  }

  // Returns whether all users of a Dequantize add it to floats that are computed later. The tail of
  // the operation that computes these then reads the bytes, which take a quarter of the memory
  // until then.
  bool waits_for_sums(Node* dequantize, const std::map<const Node*, size_t>& places) const {
    if (bytes_.at(dequantize).grid.step.size() != 1) return false;
    const Edge value{dequantize, 0};
    const std::vector<Node*> users = graph_.users(value);
    const size_t place = computed_at(dequantize, places);
    return !users.empty() && std::all_of(users.begin(), users.end(), [&](const Node* user) {
      if (!user->is("Add") || user->inputs.size() != 2 || !user->tail.empty()) return false;
      const Edge other = user->inputs[user->inputs[0] == value ? 1 : 0];
      return computed_at(other.node, places) > place && bytes_of(other) == nullptr &&
             other.node->shape(other.port) == dequantize->shape();
    });
  }

  // Goes through the nodes from the last to the first, and replaces a Dequantize by the floats
  // where nothing computes with its bytes.
  void keep_unused_bytes_as_floats() {
    const std::vector<Node*> nodes = nodes_of(graph_);
    std::map<const Node*, size_t> places;
    for (const Node* node : nodes) places.emplace(node, places.size());
    std::map<Output, size_t> uses;  // of each output, without uses by a Dequantize
    for (const Node* node : nodes)
      for (const Edge& input : node->inputs)
        if (!node->is("Dequantize")) ++uses[{input.node, input.port}];
    for (size_t i = nodes.size(); i-- > 0;) {
      const auto found = bytes_.find(nodes[i]);
      if (found == bytes_.end()) continue;
      const Edge quantized = nodes[i]->inputs[0];
      if (uses[{quantized.node, quantized.port}] != 0 || waits_for_sums(nodes[i], places)) continue;
      Node* bytes = quantized.node;
      graph_.replace_uses({nodes[i], 0}, found->second.floats);
      graph_.disconnect(nodes[i]);
      if (graph_.has_users(bytes)) continue;
      for (const Edge& input : bytes->inputs) --uses[{input.node, input.port}];
      graph_.disconnect(bytes);
    }
    graph_.remove_dead();
  }

  // Gives each user a Dequantize of its own, which is cheap in the user's kernel.
  void one_dequantize_each() {
    for (Node* node : nodes_of(graph_)) {
      if (!node->is("Dequantize")) continue;
      const std::vector<Node*> users = graph_.users({node, 0});
      for (size_t u = 1; u < users.size(); ++u) {
        if (u > 1 && users[u] == users[u - 1]) continue;
        for (size_t i = 0; i < users[u]->inputs.size(); ++i)
          if (users[u]->inputs[i] == Edge{node, 0})
            users[u]->inputs.set(i, {Insertion(graph_, graph_.next(node), "").copy(*node), 0});
      }
    }
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<const Node*, Bytes> bytes_;  // by Dequantize
  std::map<QuantizedKey, Edge> quantized_;
};

}  // namespace

void quantize(Graph& graph, const PassContext& context) {
  if (context.integers && context.traits.dot != DotProduct::none) Quantizer(graph, context).run();
}

}  // namespace clinfer
