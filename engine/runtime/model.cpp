// Reads models, and changes their ports and batch size.
#include "engine/runtime/model.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "engine/graph/insertion.h"
#include "engine/graph/states.h"
#include "engine/ir/input_shapes.h"
#include "engine/ir/ir_reader.h"
#include "engine/ir/read_states.h"
#include "engine/onnx/onnx_reader.h"
#include "engine/runtime/model_kind.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/log.h"
#include "kernels/base/numbers.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

// Identifies the content of a file: the same path and state mean the same content.
std::string state_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return path;
  PlainStream text;
  text << path << '\n'
       << info.st_dev << ' ' << info.st_ino << ' ' << info.st_size << ' ' << info.st_ctim.tv_sec
       << ' ' << info.st_ctim.tv_nsec;
  return text.str();
}

bool is_onnx(const std::string& path) {
  const std::filesystem::path extension = std::filesystem::path(path).extension();
  return extension == ".onnx" || extension == ".ONNX";
}

// Sets num_classes of DetectionOutput, which opset 8 and later leaves to the shapes, so that all
// versions can be read alike.
void count_classes(const Graph& graph) {
  for (const Node* result : graph.results) {
    Node& node = *result->inputs[0].node;
    if (!node.is("DetectionOutput") || node.attributes.has("num_classes")) continue;
    const Shape &scores = node.inputs[1].node->shape(node.inputs[1].port),
                &priors = node.inputs[2].node->shape(node.inputs[2].port);
    const int64_t numbers = node.attributes.get_bool("normalized", false) ? 4 : 5;
    if (scores.empty() || priors.empty() || priors.back() < numbers) continue;
    node.attributes.set("num_classes", std::to_string(scores.back() / (priors.back() / numbers)));
  }
}

// Returns whether an operation only rearranges the values of its first input.
bool rearranges(const Node& node) {
  for (const char* type : {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Convert"})
    if (node.is(type)) return true;
  return false;
}

// Returns the operation that computes the values which `node` and those before it rearrange.
Node* before_rearranging(Node* node) {
  while (rearranges(*node)) node = node->inputs[0].node;
  return node;
}

// Returns the operation that computes the values of an output. Skips operations that only rearrange
// them, which converters put between a network's Sigmoid or Softmax and its output.
Node& producer_of(const Node& result) {
  Node* node = result.inputs[0].node;
  Node* at = before_rearranging(node);
  return at->type == "Sigmoid" || at->type == "Softmax" || at->type == "SoftMax" ||
                 at->type == "Concat"
             ? *at
             : *node;
}

// Marks the operation of each output whose values were just enlarged, and perhaps squashed:
// statements about a picture are often made so, pictures are not.
void mark_enlarged(const Graph& graph) {
  for (const Node* result : graph.results) {
    Node& last = producer_of(*result);
    const Node* at = &last;
    while (at->is("Sigmoid") || at->is("Softmax") || at->is("SoftMax") || at->is("Transpose") ||
           at->is("Convert"))
      at = at->inputs[0].node;
    if (!at->is("Interpolate")) continue;
    const Edge& from = at->inputs[0];
    if (count(at->shape(0)) >= 4 * count(from.node->shape(from.port)))
      last.attributes.set("enlarged", "1");
  }
}

// Marks the operation of each output that is a softmax in parts: exponentials, divided by their
// sum.
void mark_softmax(const Graph& graph) {
  for (const Node* result : graph.results) {
    const Node* at = before_rearranging(result->inputs[0].node);
    if (!at->is("Divide")) continue;
    const Node *exponentials = at->inputs[0].node, *sum = at->inputs[1].node;
    if (exponentials->is("Exp") && sum->is("ReduceSum") && sum->inputs[0].node == exponentials)
      producer_of(*result).attributes.set("softmax", "1");
  }
}

// Returns whether all values of an edge are sums of convolutions, which nothing limits.
bool is_linear(const Node& node, int depth) {
  constexpr int kDeepest = 8;
  if (depth > kDeepest) return false;
  if (node.is("Convolution") || node.is("GroupConvolution")) return true;
  if (node.is("Concat"))
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Edge& input) { return is_linear(*input.node, depth + 1); });
  if (node.is("Add") && !before_rearranging(node.inputs[1].node)->is("Constant")) return false;
  return (node.is("Add") || rearranges(node)) && is_linear(*node.inputs[0].node, depth + 1);
}

// Marks the operation of each output that the last convolutions make: its scores are logits.
void mark_linear(const Graph& graph) {
  for (const Node* result : graph.results)
    if (is_linear(*result->inputs[0].node, 0)) producer_of(*result).attributes.set("linear", "1");
}

// Returns the value of an operation that is a constant of one number.
std::optional<float> one_number(const Node& node) {
  if (!node.is("Constant") || node.constant.elements() != 1) return std::nullopt;
  return node.constant.to_floats()[0];
}

// Notes the distance between the values of each output that is quantised as a whole. The reader of
// ONNX writes such an output as whole steps times the scale.
void mark_steps(const Graph& graph) {
  for (const Node* result : graph.results) {
    Node& last = producer_of(*result);
    const Node* quantized = &last;
    float scale = 1;
    if (last.is("Multiply")) {
      const auto factor = one_number(*last.inputs[1].node);
      if (!factor) continue;
      scale = *factor;
      quantized = last.inputs[0].node;
    }
    if (!quantized->is("FakeQuantize") || quantized->inputs.size() != 5) continue;
    const auto low = one_number(*quantized->inputs[3].node);
    const auto high = one_number(*quantized->inputs[4].node);
    const auto levels = quantized->attributes.get_int("levels", 0);
    if (!low || !high || levels < 2) continue;
    const float step = (*high - *low) / static_cast<float>(levels - 1);
    last.attributes.set("output_step", std::to_string(step * scale));
  }
}

// Returns the mean of a constant that is one number, or one for each of up to four channels.
std::optional<double> mean_of_constant(const Node& node) {
  if (node.is("Convert")) return mean_of_constant(*node.inputs[0].node);
  if (!node.is("Constant") || !is_float(node.constant.type())) return std::nullopt;
  constexpr size_t kMostChannels = 4;
  const std::vector<float> values = node.constant.to_floats();
  if (values.empty() || values.size() > kMostChannels) return std::nullopt;
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns the largest value of the pixels that a graph takes, if its first operations on the
// picture tell: pixels up to 255 are made small, and pixels up to 1 are moved around 0.
const char* range_taken(const Graph& graph) {
  Node* picture = nullptr;
  for (Node* parameter : graph.parameters) {
    if (parameter->shape().size() < 3) continue;
    if (picture != nullptr) return nullptr;
    picture = parameter;
  }
  if (picture == nullptr) return nullptr;
  double scale = 1, offset = 0;
  for (Edge edge{picture, 0}; Node* user = graph.only_user(edge); edge = {user, 0}) {
    if (user->inputs.size() >= 1 && user->inputs[0] == edge &&
        (user->is("Convert") || user->is("Transpose") || user->is("Reshape") ||
         user->is("Squeeze") || user->is("Unsqueeze")))
      continue;
    if (user->inputs.size() != 2) break;
    const bool left = user->inputs[0] == edge;
    const auto value = mean_of_constant(*user->inputs[left ? 1 : 0].node);
    if (!value) break;
    if (user->is("Multiply")) {
      scale *= *value;
      offset *= *value;
    } else if (user->is("Divide") && left && *value != 0) {
      scale /= *value;
      offset /= *value;
    } else if (user->is("Add")) {
      offset += *value;
    } else if (user->is("Subtract") && left) {
      offset -= *value;
    } else {
      break;
    }
  }
  const auto is_usual = [](double spread) { return spread > 0.4 && spread < 10; };
  if (is_usual(scale * 255) || (scale == 1 && offset < -50)) return "255";
  const bool moved = scale > 1.5 || (offset < -0.2 && offset > -1.5);
  return is_usual(scale) && moved ? "1" : nullptr;
}

}  // namespace

std::shared_ptr<const Model> Model::read(const std::string& path, const InputShapes& shapes,
                                         const std::string& config_file) {
  const DefaultFloats floats;
  struct Known {
    std::weak_ptr<const ReadModel> model;
    std::string states;  // of the model's files
  };
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Known>;  // by path and shapes
  std::string key =
      path + "\n" + std::to_string(shapes.width) + "x" + std::to_string(shapes.height);
  if (shapes.open_width) key += "\nopen width";
  key += "\n" + config_file + "\n";
  for (const auto& [input, shape] : shapes.inputs) key += "\n" + input + "=" + to_string(shape);
  const auto states_of = [](const std::vector<std::string>& files) {
    std::string states;
    for (const std::string& file : files) states += state_of(file) + "\n";
    return states;
  };
  {
    const std::lock_guard lock(mutex);
    if (const auto found = all.find(key); found != all.end())
      if (auto model = found->second.model.lock();
          model && states_of(model->files()) == found->second.states)
        return model;
  }
  if (const std::string kind = foreign_kind(path, is_onnx(path)); !kind.empty())
    throw Error(ErrorCode::bad_model, path + " is " + kind);
  const auto custom = read_custom_layers(config_file);
  const std::string before = state_of(path) + state_of(weights_path(path));
  const auto model = std::make_shared<ReadModel>(path, shapes, *custom);
  log(LogArea::model, LogLevel::info, [&] {
    return path + ": " + std::to_string(model->inputs().size()) + " inputs, " +
           std::to_string(model->outputs().size()) + " outputs, " +
           std::to_string(model->graph().nodes().size()) + " nodes";
  });
  for (const std::string& note : model->notes())
    log(LogArea::model, LogLevel::info, [&] { return path + ": " + note; });
  const std::string states = states_of(model->files());
  const bool changed = state_of(path) + state_of(weights_path(path)) != before;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& entry) { return entry.second.model.expired(); });
  if (!changed) all[key] = {model, states};  // unless the files changed while they were read
  return model;
}

// An ONNX model begins with the number of a field, never with a letter or "<".
static bool is_xml(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '<';
}

std::shared_ptr<const Model> Model::read_bytes(std::span<const std::byte> model,
                                               std::span<const std::byte> weights,
                                               const std::string& name, const InputShapes& shapes,
                                               const std::string& config_file) {
  const DefaultFloats floats;
  return std::make_shared<ReadModel>(model, weights, name, shapes,
                                     *read_custom_layers(config_file));
}

template <typename Read>
void ReadModel::take(Read&& model) {
  graph_ = std::move(model.graph);
  rt_info_ = std::move(model.rt_info);
  notes_ = std::move(model.notes);
  for (std::string& note : notes_) note = message_line(note);
}

void ReadModel::finish(const InputShapes& shapes) {
  set_input_shapes(*graph_, shapes);
  try {
    make_states(*graph_);
  } catch (const Error& error) {
    throw Error(error.code(), path_ + ": " + error.what(), error.place());
  }
  count_classes(*graph_);
  mark_enlarged(*graph_);
  mark_softmax(*graph_);
  mark_linear(*graph_);
  mark_steps(*graph_);
  if (const char* range = range_taken(*graph_)) rt_info_[kRangeOfPicture] = range;
  inputs_ = input_ports(*graph_);
  outputs_ = output_ports(*graph_);
  states_ = state_ports(*graph_);
}

ReadModel::ReadModel(const std::string& path, const InputShapes& shapes, const CustomLayers& custom)
    : path_(path) {
  if (!is_onnx(path)) {
    take(read_ir(path, shapes, &custom));
    files_ = {path, weights_path(path)};
  } else {
    OnnxModel model = read_onnx(path, shapes, &custom);
    files_ = std::move(model.files);
    files_.push_back(path);
    take(std::move(model));
  }
  files_.insert(files_.end(), custom.files().begin(), custom.files().end());
  finish(shapes);
}

ReadModel::ReadModel(std::span<const std::byte> model, std::span<const std::byte> weights,
                     const std::string& name, const InputShapes& shapes, const CustomLayers& custom)
    : path_(name), from_memory_(true) {
  if (model.empty()) throw Error(ErrorCode::bad_model, name + ": a model of no bytes");
  if (is_xml(model)) {
    take(read_ir({reinterpret_cast<const char*>(model.data()), model.size()}, weights, name, shapes,
                 &custom));
  } else if (!weights.empty()) {
    throw Error(ErrorCode::bad_argument,
                name + ": weights of their own belong to an OpenVINO IR, and this is no XML");
  } else {
    take(read_onnx(model, name, shapes, &custom));
  }
  finish(shapes);
}

ReadModel::ReadModel(const Model& model, std::unique_ptr<Graph> graph)
    : path_(model.path()),
      from_memory_(model.is_from_memory()),
      graph_(std::move(graph)),
      rt_info_(model.rt_info()),
      notes_(model.notes()),
      inputs_(input_ports(*graph_)),
      outputs_(output_ports(*graph_)),
      states_(state_ports(*graph_)) {}

namespace {

// Returns the Parameter that `edge` comes from through Converts alone, or nullptr. Null as well if
// anything else reads the values on the way.
Node* parameter_of(const Graph& graph, Edge edge) {
  while (graph.only_user(edge) != nullptr && edge.node->is("Convert")) edge = edge.node->inputs[0];
  return graph.only_user(edge) != nullptr && edge.node->is("Parameter") ? edge.node : nullptr;
}

bool converts_planes(const Node& node) {
  return node.is("NV12toRGB") || node.is("NV12toBGR") || node.is("I420toRGB") ||
         node.is("I420toBGR");
}

// Returns the only conversion of a graph whose planes are its inputs; else nullptr.
Node* conversion_of_planes(const Graph& graph) {
  Node* found = nullptr;
  for (const auto& node : graph.nodes()) {
    if (!converts_planes(*node)) continue;
    for (const Edge& input : node->inputs)
      if (found != nullptr || parameter_of(graph, input) == nullptr) return nullptr;
    found = node.get();
  }
  return found;
}

struct PictureInput {
  Node* node = nullptr;
  int64_t lacking = 0;  // place of the axis that it lacks
};

// Returns the only input that is a picture without a batch axis, [3,H,W] or [H,W,3], provided that
// no input has more dimensions; or the only input at all that is a square gray picture without
// channels, [1,S,S], as Keras' networks for digits take it.
PictureInput picture_of_three_axes(const Graph& graph) {
  constexpr int64_t kLeastSide = 16, kChannels = 3;
  PictureInput found;
  if (graph.parameters.size() == 1) {
    Node* const parameter = graph.parameters[0];
    const Shape& s = parameter->shape();
    if (s.size() == 3 && s[0] == 1 && s[1] == s[2] && s[1] >= kLeastSide &&
        is_float(parameter->outputs[0].type))
      return {parameter, 1};
  }
  for (Node* parameter : graph.parameters) {
    const Shape& s = parameter->shape();
    if (belongs_to_state(*parameter)) continue;
    if (s.size() > 3) return {};
    if (s.size() != 3) continue;
    const bool first = s[0] == kChannels && s[1] >= kLeastSide && s[2] >= kLeastSide;
    const bool last = s[2] == kChannels && s[0] >= kLeastSide && s[1] >= kLeastSide;
    if (!first && !last) continue;
    if (found.node != nullptr) return {};
    found = {parameter, 0};
  }
  return found;
}

// Returns the model with the axis that its picture lacks.
std::shared_ptr<const Model> with_four_axes(const Model& model) {
  std::unique_ptr<Graph> graph = model.graph().clone();
  const auto [picture, lacking] = picture_of_three_axes(*graph);
  const NodeOutput& stated = picture->outputs[0];
  Shape shape = stated.shape;
  shape.insert(shape.begin() + lacking, 1);
  Insertion insertion(*graph, picture, picture->name);
  const Edge whole = insertion.parameter(stated.type, shape);
  whole.node->outputs[0].names = stated.names;
  graph->parameters.pop_back();  // the new Parameter takes the place of the picture
  std::replace(graph->parameters.begin(), graph->parameters.end(), picture, whole.node);
  graph->replace_uses({picture, 0}, insertion.op("Squeeze", 1, {whole, insertion.ints({lacking})}));
  graph->remove_dead();
  return std::make_shared<ReadModel>(model, std::move(graph));
}

}  // namespace

std::shared_ptr<const Model> Model::with_picture(const std::shared_ptr<const Model>& model) {
  const DefaultFloats floats;
  if (picture_of_three_axes(model->graph()).node != nullptr) return with_four_axes(*model);
  if (conversion_of_planes(model->graph()) == nullptr) return model;
  std::unique_ptr<Graph> graph = model->graph().clone();
  Node* const conversion = conversion_of_planes(*graph);
  std::vector<Node*> planes;
  for (const Edge& input : conversion->inputs) planes.push_back(parameter_of(*graph, input));
  const NodeOutput& converted = conversion->outputs[0];
  const NodeOutput& first = planes[0]->outputs[0];
  Insertion insertion(*graph, conversion, planes[0]->name);
  Edge picture = insertion.parameter(first.type, converted.shape);
  picture.node->outputs[0].names = first.names;
  graph->parameters.pop_back();  // the new Parameter takes the place of the planes
  auto& parameters = graph->parameters;
  std::replace(parameters.begin(), parameters.end(), planes[0], picture.node);
  std::erase_if(parameters, [&](const Node* node) {
    return std::find(planes.begin(), planes.end(), node) != planes.end();
  });
  if (first.type != converted.type)
    picture = insertion.op("Convert", 1, {picture},
                           {{"destination_type", std::string(name_of(converted.type))}});
  graph->replace_uses({conversion, 0}, picture);
  const std::string type = conversion->type, colors = type.substr(type.size() - 3);
  graph->remove_dead();
  auto other = std::make_shared<ReadModel>(*model, std::move(graph));
  other->say(
      kColorsOfPlanes, colors,
      "the graph begins with " + type +
          "; frames of any format are converted to its picture before it, by the colorimetry "
          "that they state");
  return other;
}

const std::string& ReadModel::output_op(size_t i) const {
  return producer_of(*graph_->results.at(i)).type;
}

const std::map<std::string, std::string>& ReadModel::output_op_attributes(size_t i) const {
  return producer_of(*graph_->results.at(i)).attributes.all();
}

std::string title_of(const Model& model) {
  const std::string stem = std::filesystem::path(model.path()).stem().string();
  const size_t part = model.name().rfind(kPartName);
  return stem + (part == std::string::npos ? "" : model.name().substr(part));
}

std::string drawing_name(const Model& model, const std::string& folder) {
  static std::mutex mutex;
  // Paths of models, by folder and title.
  static auto& drawn = *new std::map<std::string, std::vector<std::string>>;
  std::string name = printable(title_of(model));
  std::replace(name.begin(), name.end(), '/', '_');
  const std::lock_guard lock(mutex);
  std::vector<std::string>& paths = drawn[folder + "/" + name];
  const auto found = std::find(paths.begin(), paths.end(), model.path());
  const auto number = static_cast<size_t>(found - paths.begin()) + 1;
  if (found == paths.end()) paths.push_back(model.path());
  return number == 1 ? name : name + "-" + std::to_string(number);
}

static Port port_of(const Node& node, int index) {
  const NodeOutput& output = node.outputs[index];
  Port port{node.name, output.type, output.shape, {}};
  port.open_width = node.attributes.has(kOpenWidth);
  if (node.is("Parameter") && node.attributes.has(kOpenShape))
    port.open_shape = node.attributes.get_ints(kOpenShape);
  return port;
}

std::vector<Port> input_ports(const Graph& graph) {
  std::vector<Port> ports;
  for (const Node* node : graph.parameters) {
    if (belongs_to_state(*node)) continue;
    ports.push_back(port_of(*node, 0));
    ports.back().tensor_names = node->outputs[0].names;
  }
  return ports;
}

std::vector<Port> state_ports(const Graph& graph) {
  std::vector<Port> ports;
  for (const StatePlaces& state : states_of(graph))
    ports.push_back(port_of(*graph.parameters[state.parameter], 0));
  return ports;
}

// Names an output after its layer, unless that name also belongs to another output or an input.
// Otherwise takes the tensor's name (in ONNX files, and in what OpenVINO makes of them, the name of
// the Result). Without tensor names it is, as in OpenVINO's GPU plug-in, the layer's name with the
// number of the output. Of several results of one tensor whose names do not tell them apart, only
// the first has all names: a list for each would take quadratic memory.
std::vector<Port> output_ports(const Graph& graph) {
  struct Shared {
    std::unordered_set<std::string_view> names;
    bool is_told = false;  // a result has the names
  };
  std::map<const Node*, size_t> readers;
  for (const Node* result : graph.results)
    if (!belongs_to_state(*result)) ++readers[result->inputs[0].node];
  std::map<std::pair<const Node*, int>, Shared> tensors;
  std::vector<Port> ports;
  for (const Node* result : graph.results) {
    if (belongs_to_state(*result)) continue;
    const auto& [node, index] = result->inputs[0];
    const std::vector<std::string>& names = node->outputs[index].names;
    Port& port = ports.emplace_back(port_of(*node, index));
    if (readers[node] == 1 && node->outputs.size() == 1 && !node->is("Parameter")) {
      port.tensor_names = names;
      continue;
    }
    const auto [found, is_new] = tensors.try_emplace({node, index});
    Shared& tensor = found->second;
    if (is_new) tensor.names.insert(names.begin(), names.end());
    const std::string stated = result->name.substr(0, result->name.find("/sink_port_"));
    const bool has_own = tensor.names.contains(stated);
    if (has_own)
      port.tensor_names = {stated};
    else if (!std::exchange(tensor.is_told, true))
      port.tensor_names = names;
    else if (!names.empty())
      port.tensor_names = {names.front()};
    if (!has_own && node->outputs.size() == 1) continue;
    port.name = names.empty() ? port.name + "." + std::to_string(index) : port.tensor_names.front();
  }
  return ports;
}

namespace {

// Returns the input whose first dimension is the batch: the first picture, else the first input
// that has dimensions.
std::optional<size_t> picture_of(const Graph& graph) {
  std::optional<size_t> first;
  for (size_t i = graph.parameters.size(); i-- > 0;)
    if (!graph.parameters[i]->shape().empty() && !belongs_to_state(*graph.parameters[i]) &&
        (!first || graph.parameters[i]->shape().size() >= 4 ||
         graph.parameters[*first]->shape().size() < 4))
      first = i;
  return first;
}

// Tells which element of which constant input states the number of images.
struct BatchStated {
  size_t input = 0, index = 0;
};

std::optional<std::vector<int64_t>> constant_ints(const Node& node, size_t input) {
  if (input >= node.inputs.size()) return {};
  const Tensor* value = constant_value(node.inputs[input]);
  return value ? std::optional(value->to_ints()) : std::nullopt;
}

// Returns the position of dimension 0 in a list of axes. Without a list, axes are in order.
std::optional<size_t> place_of_batch(const std::optional<std::vector<int64_t>>& axes, size_t rank) {
  if (!axes) return 0;
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] == 0 || (*axes)[i] == -static_cast<int64_t>(rank)) return i;
  return {};
}

// Finds the batch size that a Reshape, resize, broadcast or slice states. Left as it is, it would
// merge, drop or repeat images of another batch.
std::optional<BatchStated> batch_stated(const Node& node, size_t rank) {
  if (node.is("Reshape")) return BatchStated{1, 0};
  if (node.is("Broadcast") && node.shape().size() == rank) return BatchStated{1, 0};
  if (node.is("Interpolate")) {
    std::optional<std::vector<int64_t>> axes = constant_ints(node, node.opset < 11 ? 3 : 2);
    if (node.opset < 4)
      axes = node.attributes.get_ints("axes");
    else if (node.attributes.get_string("shape_calculation_mode") != "sizes")
      return {};
    if (const auto place = place_of_batch(axes, rank)) return BatchStated{1, *place};
  }
  if (node.is("StridedSlice") || node.is("Slice")) {
    const auto place =
        node.is("Slice") ? place_of_batch(constant_ints(node, 4), rank) : std::optional<size_t>(0);
    const auto begin = constant_ints(node, 1);
    if (place && begin && *place < begin->size() && (*begin)[*place] == 0)
      return BatchStated{2, *place};
  }
  return {};
}

void rebatch_constants(Graph& graph, int64_t before, int64_t batch) {
  for (Node* node : nodes_of(graph)) {
    if (node->inputs.size() < 2 || node->inputs[0].node->is("Constant")) continue;
    const Shape& in = node->inputs[0].node->shape(node->inputs[0].port);
    if (in.empty() || in[0] != before) continue;
    const auto stated = batch_stated(*node, in.size());
    auto values = stated ? constant_ints(*node, stated->input) : std::nullopt;
    if (!values || stated->index >= values->size() || (*values)[stated->index] != before) continue;
    (*values)[stated->index] = batch;
    const Edge edge = node->inputs[stated->input];
    const Tensor value = Tensor::of(ElementType::i64, edge.node->shape(edge.port), *values);
    node->inputs.set(stated->input, Insertion(graph, node, edge.node->name).constant(value));
  }
}

}  // namespace

void reshape(Graph& graph, const std::vector<Shape>& shapes) {
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const Node& parameter = *graph.parameters[i];
    if (shapes.at(i).size() != parameter.shape().size())
      throw Error(ErrorCode::bad_argument,
                  "input \"" + parameter.name + "\" has the shape " + to_string(parameter.shape()) +
                      ", " + to_string(shapes[i]) + " has another number of dimensions");
  }
  if (const auto picture = picture_of(graph)) {
    const int64_t before = graph.parameters[*picture]->shape()[0];
    if (shapes[*picture][0] != before) rebatch_constants(graph, before, shapes[*picture][0]);
  }
  std::string text;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    graph.parameters[i]->outputs[0].shape = shapes[i];
    text += (i ? ", " : "") + to_string(shapes[i]);
  }
  try {
    infer_shapes(graph);
  } catch (const Error& error) {
    throw Error(ErrorCode::unsupported,
                "the model does not allow inputs of " + text + ": " + error.what());
  }
}

void set_input_shapes(Graph& graph, const InputShapes& wanted) {
  std::vector<Shape> stated;
  for (const Node* parameter : graph.parameters) stated.push_back(parameter->shape());
  const std::vector<Shape> shapes = with_wanted(stated_inputs(graph), stated, wanted);
  if (shapes != stated) reshape(graph, shapes);
}

int64_t batch_of(const Graph& graph) {
  const auto picture = picture_of(graph);
  return picture ? graph.parameters[*picture]->shape()[0] : 1;
}

void set_batch(Graph& graph, int64_t batch) {
  const auto picture = picture_of(graph);
  if (!picture)
    throw Error(ErrorCode::unsupported, "the model has no input with a batch dimension");
  const int64_t before = graph.parameters[*picture]->shape()[0];
  if (batch != before && has_states(graph))
    throw Error(ErrorCode::unsupported,
                "the model keeps states from one inference to the next, and has them for " +
                    std::to_string(before) + (before == 1 ? " image" : " images") +
                    " an inference: no other batch is possible; give each stream a request of its "
                    "own instead");
  std::vector<Shape> shapes;
  for (const Node* parameter : graph.parameters) {
    shapes.push_back(parameter->shape());
    // Sequences have the batch as their second dimension, after the time.
    const auto found = std::find(shapes.back().begin(), shapes.back().end(), before);
    if (found != shapes.back().end()) *found = batch;
  }
  reshape(graph, shapes);
}

}  // namespace clinfer
