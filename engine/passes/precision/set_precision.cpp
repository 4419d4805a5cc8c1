// Decides in which type tensors are stored: floats as the device computes best, 64-bit integers as
// 32 bits, booleans as bytes. Constants keep their values; only the type that kernels see changes.
// Operands of operations that run on the host stay f32, whether the host or the application
// provides them, and so do boxes and scores (Proposal, NonMaxSuppression, DetectionOutput) wherever
// they are computed: f16 is too coarse for pixels, and rounding scores would change their order.
// Floats that become bytes, and sort keys, stay f32 where that is cheap.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "engine/passes/passes.h"
#include "kernels/convolution/tiles/convolution_tile.h"
#include "kernels/tail.h"

namespace clinfer {

namespace {

bool is_wide(const Node& node) {
  if (node.is("Parameter")) return true;
  return node.def &&
         (node.def->keep_f32 || (node.def->families.empty() && !node.def->host_reason.empty()));
}

bool port_keeps_f32(const Graph& graph, Node& node, int port, bool is_body) {
  if (is_body && node.is("Parameter")) return false;
  const auto takes_wide = [&](const Node& user) {
    if (node.is("Constant")) return user.def && user.def->keep_f32;
    return user.is("Result") || (user.def && !user.def->host_reason.empty());
  };
  if (!node.is("Constant") && !is_wide(node)) return false;
  const std::vector<Node*> users = graph.users({&node, port});
  return std::all_of(users.begin(), users.end(),
                     [&](const Node* user) { return takes_wide(*user); });
}

int64_t pixels_of_picture(const Graph& graph) {
  int64_t most = 0;
  for (const Node* parameter : graph.parameters)
    if (const Shape& shape = parameter->shape(); shape.size() == 4 && count(shape) > 0)
      most = std::max(most, count(shape) / (shape[0] * std::min(shape[1], shape[3])));
  return most;
}

// The largest number of channels over which a sum hardly averages out the rounding of each.
constexpr int64_t kFewChannels = 32;
// The number of the picture's pixels for which a map has at least one: such a map has half the
// picture's width and height.
constexpr int64_t kLeastShare = 4;

// Returns whether an output is a probability for each pixel that a convolution sums up from few
// channels, as in text detectors for small devices. Such a map is very steep between text and
// background, so that the rounding errors of all layers, few of which average out, become visible
// in it: up to 0.03, where a single layer shifts values by no more than half a unit in the last
// place.
bool is_narrow_probability_map(const Graph& graph, const Node& result) {
  const auto is_one_of = [](const Node& node, std::initializer_list<const char*> types) {
    return std::any_of(types.begin(), types.end(), [&](const char* type) { return node.is(type); });
  };
  Edge at = result.inputs[0];
  constexpr int kMostSteps = 64;  // between the map and the output
  int steps = 0;
  const auto go_back_through = [&](std::initializer_list<const char*> types) {
    for (; is_one_of(*at.node, types) && steps < kMostSteps; ++steps) {
      const auto& inputs = at.node->inputs;
      const bool first = inputs.size() < 2 || !inputs[0].node->is("Constant");
      at = inputs[first ? 0 : 1];
    }
  };
  go_back_through({"Convert", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Clamp"});
  if (!is_one_of(*at.node, {"Sigmoid", "HardSigmoid", "SoftMax"})) return false;
  at = at.node->inputs[0];
  go_back_through({"Add", "Subtract", "Multiply", "Convert", "Reshape", "Transpose"});
  if (!is_one_of(*at.node, {"Convolution", "ConvolutionBackpropData"})) return false;
  const Edge data = at.node->inputs[0];
  const Shape& map = at.node->shape();
  return map.size() == 4 && data.node->shape(data.port)[1] <= kFewChannels &&
         map[2] * map[3] * kLeastShare >= pixels_of_picture(graph);
}

// Counts the products of floats that the node adds up for each number of its output; 0 where it
// adds none.
int64_t terms_of_a_sum(const Node& node) {
  const bool grouped = node.is("GroupConvolution") || node.is("GroupConvolutionBackpropData"),
             transposed =
                 node.is("ConvolutionBackpropData") || node.is("GroupConvolutionBackpropData");
  if (node.is("MatMul")) {
    const Shape& a = node.inputs[0].node->shape(node.inputs[0].port);
    const bool by_column = a.size() > 1 && node.attributes.get_bool("transpose_a", false);
    return a[a.size() - (by_column ? 2 : 1)];
  }
  if (node.is("CompressedMatMul")) return node.inputs[0].node->shape(node.inputs[0].port).back();
  if (node.is("Attention")) {
    const Shape& keys = node.inputs[1].node->shape(node.inputs[1].port);
    return keys[keys.size() - 2];
  }
  if (!(node.is("Convolution") || grouped || transposed)) return 0;
  const auto shape_of = [&](size_t i) { return node.inputs[i].node->shape(node.inputs[i].port); };
  const ConvShape s =
      read_convolution(grouped, transposed, node.attributes, shape_of(0), shape_of(1)).shape;
  return s.taps() * s.in_channels;
}

using Output = std::pair<const Node*, int>;

Output output_of(const Edge& edge) { return {edge.node, edge.port}; }
bool is_data(const Edge& edge) { return is_float(edge.node->outputs[edge.port].type); }

// Sets of float tensors that are to be of one storage type.
class OfOneType {
 public:
  // Unites the types of the operation's inputs and outputs.
  void unite(const Node& node) {
    std::vector<Output> places;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (is_data(node.inputs[i]) &&
          // Constants in tails are f32 anyway.
          (i < own_inputs(node) || !node.inputs[i].node->is("Constant")))
        places.push_back(output_of(node.inputs[i]));
    for (size_t port = 0; port < node.outputs.size(); ++port)
      if (is_float(node.outputs[port].type)) places.push_back({&node, static_cast<int>(port)});
    for (const Output& other : places) above_[root(other)] = root(places[0]);
  }

  // Returns the representative of the set. Halves the path for later calls.
  Output root(Output place) {
    for (auto at = above_.find(place); at != above_.end() && at->second != place;
         at = above_.find(place)) {
      if (const auto next = above_.find(at->second); next != above_.end())
        at->second = next->second;
      place = at->second;
    }
    return place;
  }

 private:
  std::map<Output, Output> above_;  // from a tensor towards the root of its set
};

// Finds float tensors on their way into a layer of integers. Rounded to f16 they would give other
// bytes, and later layers amplify the difference: scores of detectors move by a tenth. Tensors that
// one operation reads and writes have one type, so they all stay f32. Excepted are sums in which
// the rounding errors of f16 average out: long ones, and those of picture values themselves, which
// have few digits. Matrix instructions take f16 only, so that there all sums but the shortest, as
// of a depthwise convolution, are worth it.
class FloatsBeforeBytes {
 public:
  FloatsBeforeBytes(const Graph& graph, const DeviceTraits& traits) {
    const bool matrices = traits.matrix != MatrixUnit::none && !traits.is_cpu;  // AMX has no f16
    const int64_t short_sum = matrices ? kShortSumForMatrices : kShortSum;
    const auto makes_bytes = [](const auto& node) {
      return node->is("Quantize") || quantizes(node->tail);
    };
    if (std::none_of(graph.nodes().begin(), graph.nodes().end(), makes_bytes)) return;
    std::set<Output> summed;
    for (const auto& node : graph.nodes())
      if (node->def && !is_wide(*node)) together_.unite(*node);
    for (const auto& node : graph.nodes()) {
      if (!node->def || node->inputs.empty() || !is_data(node->inputs[0])) continue;
      const int64_t most = node->inputs[0].node->is("Parameter") ? 0 : short_sum;
      if (terms_of_a_sum(*node) > most) summed.insert(together_.root(output_of(node->inputs[0])));
    }
    for (const auto& node : graph.nodes()) {
      if (!makes_bytes(node)) continue;
      for (const Edge& input : node->inputs)
        if (const Output at = together_.root(output_of(input));
            is_data(input) && !summed.contains(at))
          wide_.insert(at);
    }
  }

  bool contain(const Node& node, int port) { return wide_.contains(together_.root({&node, port})); }

 private:
  // The most products of a short sum.
  static constexpr int64_t kShortSum = 512, kShortSumForMatrices = 15;

  OfOneType together_;
  std::set<Output> wide_;
};

// Finds floats that reach a sort, or the host, which decides by them. Scores near 1, those that
// count, are 0.0005 apart in f16: many would become equal, and chance would decide which box
// suppresses which. They are f32 from the last operation on that can read one type and write the
// other, as far as all their readers accept it; tensors that are only moved keep their type.
class KeepSortedInF32 {
 public:
  explicit KeepSortedInF32(const Graph& graph) {
    std::vector<const Node*> ahead;
    for (const auto& node : graph.nodes())
      if (sorts(*node)) ahead.push_back(node.get());
    if (ahead.empty()) return;
    std::set<Output> narrow;
    for (const auto& node : graph.nodes())
      if (moves(*node)) together_.unite(*node);
    for (const auto& node : graph.nodes()) {
      if (node->is("Result") || moves(*node) || converts(*node)) continue;
      for (const Edge& input : node->inputs) narrow.insert(together_.root(output_of(input)));
      for (size_t port = 0; port < node->outputs.size(); ++port)
        narrow.insert(together_.root({node.get(), static_cast<int>(port)}));
    }
    std::set<const Node*> seen(ahead.begin(), ahead.end());
    while (!ahead.empty()) {
      const Node* node = ahead.back();
      ahead.pop_back();
      for (const Edge& input : node->inputs) {
        const Output at = together_.root(output_of(input));
        if (!is_data(input) || narrow.contains(at)) continue;
        wide_.insert(at);
        if (seen.insert(input.node).second) ahead.push_back(input.node);
      }
    }
  }

  bool contain(const Node& node, int port) { return wide_.contains(together_.root({&node, port})); }

 private:
  static bool sorts(const Node& node) {
    return is_wide(node) || node.is("TopK") || finds_places(node);
  }

  static bool moves(const Node& node) {
    return node.def &&
           (node.def->view || node.is("Concat") || node.is("Gather") || node.is("GatherElements") ||
            node.is("GatherND") || node.is("TopK") || finds_places(node));
  }

  static bool finds_places(const Node& node) {
    return node.is("MaxPool") && node.outputs.size() > 1;
  }

  static bool converts(const Node& node) {
    return node.is("Constant") || is_wide(node) || (node.def && node.def->converts);
  }

  OfOneType together_;
  std::set<Output> wide_;
};

}  // namespace

static bool adds_up_products(const Node& node) {
  return node.is("Convolution") || node.is("GroupConvolution") || node.is("MatMul");
}

// Returns whether the node adds up products of integers. The sums, which are floats on the device,
// exceed the range of f16 by far.
static bool sums_integers(const Node& node) {
  return adds_up_products(node) && !is_float(node.outputs[0].type);
}

bool half_activations(const Config& config, const Graph& graph, bool device_has_fp16) {
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [](const auto& node) { return sums_integers(*node); }))
    return false;
  // Custom kernels compute with the type in which the tensors are stored.
  if (!device_has_fp16 && std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                      [](const auto& node) { return is_custom(*node); }))
    return false;
  if (config.precision != Precision::automatic) return config.precision == Precision::f16;
  const bool quantised = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const auto& node) { return node->is("FakeQuantize"); });
  return device_has_fp16 && (config.fp16_for_quantized_models || !quantised) &&
         std::none_of(graph.results.begin(), graph.results.end(), [&](const Node* result) {
           return is_narrow_probability_map(graph, *result);
         });
}

void set_precision(Graph& graph, const PassContext& context) {
  FloatsBeforeBytes before_bytes(graph, context.traits);
  KeepSortedInF32 to_sort(graph);
  for (const auto& node : graph.nodes()) {
    if (context.bf16_products && adds_up_products(*node)) node->attributes.set("products", "bf16");
    for (size_t port = 0; port < node->outputs.size(); ++port) {
      NodeOutput& output = node->outputs[port];
      const int at = static_cast<int>(port);
      if (is_float(output.type))
        output.type = port_keeps_f32(graph, *node, at, context.is_body) ||
                              before_bytes.contain(*node, at) || to_sort.contain(*node, at)
                          ? ElementType::f32
                          : context.activations;
      else if (output.type == ElementType::boolean)
        output.type = ElementType::u8;
      else if (size_of(output.type) == 8 || output.type == ElementType::u32 ||
               size_of(output.type) == 2)
        output.type = ElementType::i32;
    }
  }
}

}  // namespace clinfer
