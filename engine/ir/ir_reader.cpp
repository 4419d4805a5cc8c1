// Reads XML to layers as the file states them, makes graph nodes of layers and edges, infers shapes
// and compares them with the file's.
#include "engine/ir/ir_reader.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <pugixml.hpp>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/affinity.h"
#include "engine/ir/input_shapes.h"
#include "engine/ir/ir_text.h"
#include "engine/ir/model_file.h"
#include "engine/ir/read_states.h"
#include "engine/ir/rt_info.h"
#include "engine/ir/weights.h"
#include "kernels/base/text.h"

namespace clinfer {

namespace {

constexpr size_t kMostNamedLayers = 1000;  // limit for one message about unsupported layers
constexpr size_t kDeepestBody = 4;         // depth of loops inside loops

[[noreturn]] void bad(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_model, what, place);
}
[[noreturn]] void unsupported(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::unsupported, what, place);
}

// An input or output as a <port> element states it.
struct StatedPort {
  int64_t id = 0;
  Shape shape;                     // kDynamic for an open dimension
  bool states_shape = false;       // false for no dimensions, and if the file states none
  std::optional<StoredType> type;  // empty if the file states none
  std::vector<std::string> names;
  std::string layout;  // "[N,C,H,W]" or ""
};

// The ports of one side of a layer, in the order of the file.
struct StatedPorts {
  std::vector<StatedPort> list;
  std::vector<std::pair<int64_t, size_t>> by_id;  // sorted; index into `list`

  std::optional<size_t> find(int64_t id) const {
    const auto found = std::lower_bound(by_id.begin(), by_id.end(), std::make_pair(id, size_t{0}));
    return found == by_id.end() || found->first != id ? std::nullopt : std::optional(found->second);
  }
};

class NetReader;

struct LayerBody {
  std::unique_ptr<NetReader> reader;
  pugi::xml_node map;  // its port map
};

struct Layer {
  pugi::xml_node xml;
  std::string version;  // as written in the file
  StatedPorts inputs, outputs;
  Node* node = nullptr;
  std::vector<LayerBody> bodies = {};
};

// Translates type names that earlier and other writers use to those of the graph.
std::string current_type(const std::string& type) {
  if (type == "Const") return "Constant";
  if (type == "Relu") return "ReLU";
  if (type == "PRelu") return "PReLU";
  if (type == "Softmax") return "SoftMax";
  return type;
}

int64_t need_int(const pugi::xml_node& xml, const char* attribute) {
  const pugi::xml_attribute found = xml.attribute(attribute);
  if (!found) bad(std::string("<") + xml.name() + "> has no " + attribute);
  const auto value = parse_int(found.value());
  if (!value)
    bad(std::string("<") + xml.name() + "> has " + attribute + "=\"" + printable(found.value()) +
        "\", which is not an integer");
  return *value;
}

StatedPort read_port(const pugi::xml_node& xml) {
  StatedPort port;
  port.id = need_int(xml, "id");
  for (const pugi::xml_node& dim : xml.children("dim")) {
    const auto value = parse_shape(dim.text().get());
    if (!value || value->size() != 1)
      bad("port " + std::to_string(port.id) + " has the dimension \"" +
          printable(dim.text().get()) + "\", which is not an integer");
    port.shape.push_back((*value)[0]);
    port.states_shape = true;
  }
  const char* precision = xml.attribute("precision").value();
  if (!is_unspecified(precision)) {
    port.type = parse_element_type(precision);
    if (!port.type)
      unsupported("port " + std::to_string(port.id) + " has the precision \"" +
                  printable(precision) + "\", which is not supported");
  }
  port.names = parse_names(xml.attribute("names").value());
  for (const pugi::xml_node& info : xml.child("rt_info").children("attribute"))
    if (std::strcmp(info.attribute("name").value(), "layout") == 0)
      port.layout = info.attribute("layout").value();
  return port;
}

// Reads <attribute name="affinity" value="GPU"/> or <affinity value="GPU"/>; returns "" if there is
// none.
std::string read_affinity(const pugi::xml_node& rt_info) {
  for (const pugi::xml_node& info : rt_info.children())
    if (std::strcmp(info.attribute("name").value(), kAffinity) == 0 ||
        std::strcmp(info.name(), kAffinity) == 0)
      return info.attribute("value").value();
  return "";
}

StatedPorts read_ports(const pugi::xml_node& xml) {
  StatedPorts ports;
  for (const pugi::xml_node& child : xml.children("port")) {
    ports.list.push_back(read_port(child));
    ports.by_id.emplace_back(ports.list.back().id, ports.list.size() - 1);
  }
  std::sort(ports.by_id.begin(), ports.by_id.end());
  const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto twice = std::adjacent_find(ports.by_id.begin(), ports.by_id.end(), same_id);
  if (twice != ports.by_id.end()) bad("two ports have the id " + std::to_string(twice->first));
  return ports;
}

// Replaces invalid UTF-8 here, once for all: names and labels go to GStreamer, JSON and drawings,
// which accept nothing else.
struct MakeValid : pugi::xml_tree_walker {
  template <typename Named>
  static void mend(Named item) {
    if (!is_utf8(item.name())) item.set_name(valid_utf8(item.name()).c_str());
    if (!is_utf8(item.value())) item.set_value(valid_utf8(item.value()).c_str());
  }
  bool for_each(pugi::xml_node& node) override {
    mend(node);
    for (const pugi::xml_attribute& attribute : node.attributes()) mend(attribute);
    return true;
  }
};

// Returns the <net> element. Throws an error that tells what the file is instead.
pugi::xml_node parse(std::string_view text, pugi::xml_document& document, int& format) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) bad("the file is empty");
  const bool utf16 =
      text.size() >= 2 && (text.substr(0, 2) == "\xff\xfe" || text.substr(0, 2) == "\xfe\xff");
  if (!utf16 && text.substr(0, 4096).find('\0') != std::string_view::npos)
    bad("not XML but binary data; an OpenVINO IR .xml is needed, or ONNX named .onnx (convert "
        "other models first)");
  const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  MakeValid make_valid;
  document.traverse(make_valid);
  const pugi::xml_node root = document.document_element();
  const bool is_net = std::strcmp(root.name(), "net") == 0;
  if (!result) {
    const bool binary = std::any_of(text.begin(), text.begin() + std::min<size_t>(text.size(), 64),
                                    [](char c) { return static_cast<unsigned char>(c) < 9; });
    if (binary || result.status == pugi::status_no_document_element)
      bad("not XML; an OpenVINO IR .xml is needed, or ONNX named .onnx (convert other models "
          "first)");
    const auto end =
        text.begin() + std::min<ptrdiff_t>(result.offset, static_cast<ptrdiff_t>(text.size()));
    bad(std::string(is_net || !root ? "" : "not an OpenVINO IR and ") +
        "not well-formed XML: " + result.description() + " (line " +
        std::to_string(1 + std::count(text.begin(), end, '\n')) + ")");
  }
  if (!is_net)
    bad("not an OpenVINO IR: the root element is <" + printable(root.name()) +
        ">, <net> is expected");
  const auto version = parse_int(root.attribute("version").value());
  if (!version) bad("<net> has no version, or one that is not a number");
  if (*version != 10 && *version != 11)
    unsupported("IR version " + std::to_string(*version) +
                " is not supported, 10 and 11 are; convert the original model with OpenVINO "
                "2020.4 or newer");
  format = static_cast<int>(*version);
  return root;
}

// State shared by the readers of a network and of the bodies inside it.
struct Shared {
  std::function<ByteSource()> open_weights;
  const InputShapes& wanted;
  const CustomLayers* custom;  // may be null
  const std::map<std::string, std::string>& rt_info;
  std::optional<Weights> weights = {};
  std::vector<std::string> notes = {};
  size_t unsupported_layers = 0;
  std::string unsupported = {};  // the first unsupported layers
};

// Reads a <net>, or a <body> inside a layer.
class NetReader {
 public:
  NetReader(Shared& shared, size_t depth) : shared_(shared), depth_(depth) {}

  // Reads layers and edges, also those of bodies, and collects what is not supported.
  void read(const pugi::xml_node& net) {
    if (depth_ > kDeepestBody) unsupported("bodies are nested too deeply");
    graph_ = std::make_unique<Graph>();
    graph_->name = net.attribute("name").value();
    read_layers(net);
    read_edges(net);
    collect_unsupported();
  }

  // Returns the graph with its constants and bodies, but without shapes. To be called once.
  std::unique_ptr<Graph> finish() {
    for (Layer& layer : layers_)
      naming(layer, [&] {
        fill(layer);
        finish_bodies(layer);
      });
    graph_->sort();
    if (depth_ == 0) fill_inputs();  // shapes inside a body follow from outside
    return std::move(graph_);
  }

  // Compares the inferred shapes with those that the file states.
  void compare_all() {
    for (const Layer& layer : layers_) naming(layer, [&] { compare(layer); });
  }

 private:
  void fill_inputs() {
    std::vector<StatedInput> stated = stated_inputs(*graph_);
    for (size_t i = 0; i < stated.size(); ++i)
      note_open_shape(*graph_->parameters[i], stated[i].shape);
    if (shared_.wanted.empty()) fill_picture(stated);
    const std::vector<Shape> shapes = fill_open(stated, shared_.wanted, shared_.notes);
    if (const auto text = text_among(stated, shared_.wanted))
      graph_->parameters[*text]->attributes.set(kOpenWidth, "true");
    for (size_t i = 0; i < shapes.size(); ++i) graph_->parameters[i]->outputs[0].shape = shapes[i];
  }

  // Gives a picture that is open in height and width the size for which the network was exported,
  // if the metadata of the file from which it was converted state it: "[480, 640]", height and
  // width.
  void fill_picture(std::vector<StatedInput>& inputs) {
    const auto found = shared_.rt_info.find("framework/imgsz");
    if (found == shared_.rt_info.end() || found->second.size() < 3) return;
    const auto size =
        parse_shape(std::string_view(found->second).substr(1, found->second.size() - 2));
    if (!size || size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1) return;
    for (StatedInput& input : inputs) {
      Shape& shape = input.shape;
      if (shape.size() != 4 || shape[2] != kDynamic || shape[3] != kDynamic) continue;
      shape[2] = (*size)[0];
      shape[3] = (*size)[1];
      shared_.notes.push_back("input \"" + input.name + "\": the open size is taken as " +
                              std::to_string(shape[3]) + "x" + std::to_string(shape[2]) +
                              ", as rt_info says, unless reshape=WIDTHxHEIGHT (--reshape) says "
                              "otherwise");
    }
  }

  template <typename Work>
  static void naming(const Layer& layer, Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      throw Error(error.code(), label(*layer.node) + ": " + error.what(), error.place());
    }
  }

  void read_layers(const pugi::xml_node& net) {
    for (const pugi::xml_node& xml : net.child("layers").children("layer")) read_layer(xml);
    if (layers_.empty()) bad("the model has no layers");
    if (graph_->results.empty()) bad("the model has no Result, so nothing to compute");
    for (size_t i = 0; i < layers_.size(); ++i) by_id_[layers_[i].node->id] = i;
  }

  void read_layer(const pugi::xml_node& xml) {
    auto node = std::make_unique<Node>();
    node->name = xml.attribute("name").value();
    node->type = current_type(xml.attribute("type").value());
    Layer layer{xml, xml.attribute("version").value(), {}, {}, node.get()};
    const auto opset = parse_opset(layer.version);
    node->opset = opset.value_or(0);
    try {
      const int64_t id = need_int(xml, "id");
      if (id < 0 || id > INT_MAX) bad("<layer> has the id " + std::to_string(id));
      node->id = static_cast<int>(id);
    } catch (const Error& error) {
      throw Error(error.code(), "layer \"" + printable(node->name) + "\": " + error.what(),
                  error.place());
    }
    naming(layer, [&] {
      if (!ids_.insert(node->id).second) bad("another layer has the same id");
      if (node->type.empty()) bad("<layer> has no type");
      for (const pugi::xml_attribute& attribute : xml.child("data").attributes())
        node->attributes.set(attribute.name(), attribute.value());
      if (const std::string affinity = read_affinity(xml.child("rt_info")); !affinity.empty())
        node->attributes.set(kAffinity, affinity);
      layer.inputs = read_ports(xml.child("input"));
      layer.outputs = read_ports(xml.child("output"));
      check_port_counts(*node, layer);
      read_bodies(layer);
    });
    node->inputs = std::vector<Edge>(layer.inputs.list.size());
    for (const StatedPort& port : layer.outputs.list) {
      NodeOutput output;
      output.names = port.names;
      node->outputs.push_back(std::move(output));
    }
    if (node->is("Parameter"))
      graph_->parameters.push_back(node.get());
    else if (node->is("Result"))
      graph_->results.push_back(node.get());
    else if (!node->is("Constant"))
      naming(layer, [&] { define(*node, layer); });
    graph_->append(std::move(node));
    layers_.push_back(std::move(layer));
  }

  // A custom layer replaces the engine's operation of the same name.
  void define(Node& node, const Layer& layer) const {
    const std::string written = layer.xml.attribute("type").value();
    if (const std::string type = node.attributes.get_string("destination_type", "");
        node.is("Convert") && find_float8(type)) {
      node.type = "ToFloat8";
      node.attributes.set("type", type);
    }
    if (node.is("ConvertLike") && layer.inputs.list.size() > 1 && layer.inputs.list[1].type &&
        layer.inputs.list[1].type->float8)
      unsupported("converts to the type of floats of 8 bits; a Convert can");
    auto custom = shared_.custom ? shared_.custom->find(written) : nullptr;
    if (!custom && shared_.custom) custom = shared_.custom->find(node.type);
    if (!custom) {
      node.def = find_op(node.type, node.opset);
      if (node.def != nullptr) return;
      node.def = state_op(node.type, node.opset);
      if (node.def != nullptr && depth_ > 0)
        unsupported(
            "keeps a value between inferences inside of a loop or branch; only the model "
            "itself can do that");
      return;
    }
    const auto stated = [](const StatedPorts& ports) {
      std::vector<CustomUse::Stated> all;
      for (const StatedPort& port : ports.list) {
        CustomUse::Stated& one = all.emplace_back();
        if (port.states_shape) one.shape = port.shape;
        if (port.type) one.type = port.type->in_graph;
      }
      return all;
    };
    set_custom(node, std::move(custom), written, stated(layer.inputs), stated(layer.outputs));
  }

  // Reads the networks inside TensorIterator, Loop and If.
  void read_bodies(Layer& layer) {
    static constexpr const char* kBodies[][2] = {
        {"body", "port_map"}, {"then_body", "then_port_map"}, {"else_body", "else_port_map"}};
    for (const auto& [element, map] : kBodies) {
      const pugi::xml_node xml = layer.xml.child(element);
      if (!xml) continue;
      layer.bodies.push_back(
          {std::make_unique<NetReader>(shared_, depth_ + 1), layer.xml.child(map)});
      layer.bodies.back().reader->read(xml);
    }
  }

  // Connects the bodies with the layer's ports.
  static void finish_bodies(Layer& layer) {
    for (auto& [reader, map] : layer.bodies) {
      auto graph = reader->finish();
      const auto position = [](const std::vector<Node*>& list, int64_t id, const char* what) {
        for (size_t i = 0; i < list.size(); ++i)
          if (list[i]->id == id) return i;
        bad("its body has no " + std::string(what) + " with the id " + std::to_string(id));
      };
      const std::vector<Node*> parameters = graph->parameters, results = graph->results;
      auto body = std::make_shared<GraphBody>(std::move(graph));
      for (const pugi::xml_node& port : map.children("input")) {
        const size_t inner = position(parameters, need_int(port, "internal_layer_id"), "Parameter");
        if (std::strcmp(port.attribute("purpose").value(), "current_iteration") == 0)
          body->counter = inner;
        else
          body->inputs.push_back(read_map(port, layer.inputs, inner));
      }
      for (const pugi::xml_node& port : map.children("output")) {
        const size_t inner = position(results, need_int(port, "internal_layer_id"), "Result");
        if (std::strcmp(port.attribute("purpose").value(), "execution_condition") == 0)
          body->condition = inner;
        if (need_int(port, "external_port_id") >= 0)
          body->outputs.push_back(read_map(port, layer.outputs, inner));
      }
      for (const pugi::xml_node& edge : layer.xml.child("back_edges").children("edge"))
        body->back_edges.push_back({position(results, need_int(edge, "from-layer"), "Result"),
                                    position(parameters, need_int(edge, "to-layer"), "Parameter")});
      layer.node->bodies.push_back(std::move(body));
    }
  }

  static Body::Port read_map(const pugi::xml_node& xml, const StatedPorts& ports, size_t inner) {
    Body::Port port;
    const int64_t id = need_int(xml, "external_port_id");
    const auto outer = ports.find(id);
    if (!outer) bad("its port map names port " + std::to_string(id) + ", which does not exist");
    port.outer = *outer;
    port.inner = inner;
    port.sliced = !xml.attribute("axis").empty();
    if (!port.sliced) return port;
    port.axis = need_int(xml, "axis");
    const auto number = [&](const char* name, int64_t& value) {
      if (!xml.attribute(name)) return;
      value = need_int(xml, name);
      if (std::abs(value) > INT_MAX)
        bad(std::string("its port map has ") + name + "=" + std::to_string(value));
    };
    number("start", port.start);
    number("end", port.end);
    number("stride", port.stride);
    number("part_size", port.part);
    return port;
  }

  static void check_port_counts(const Node& node, const Layer& layer) {
    const bool source = node.is("Parameter") || node.is("Constant"), sink = node.is("Result");
    if (source && (!layer.inputs.list.empty() || layer.outputs.list.size() != 1))
      bad("must have no input and one output");
    if (sink && (layer.inputs.list.size() != 1 || !layer.outputs.list.empty()))
      bad("must have one input and no output");
    if (!source && !sink && !node.is("Assign") && layer.outputs.list.empty()) bad("has no output");
  }

  void read_edges(const pugi::xml_node& net) {
    for (const pugi::xml_node& xml : net.child("edges").children("edge")) {
      const int64_t from = need_int(xml, "from-layer"), from_port = need_int(xml, "from-port");
      const int64_t to = need_int(xml, "to-layer"), to_port = need_int(xml, "to-port");
      const Layer& source = layer_of(from);
      const Layer& target = layer_of(to);
      const size_t output = port_of(source, source.outputs, from_port, "output");
      const size_t input = port_of(target, target.inputs, to_port, "input");
      naming(target, [&] {
        if (target.node->inputs[input].node)
          bad("two edges lead to input port " + std::to_string(to_port));
      });
      target.node->inputs.set(input, {source.node, static_cast<int>(output)});
    }
    for (const Layer& layer : layers_)
      naming(layer, [&] {
        for (size_t i = 0; i < layer.inputs.list.size(); ++i)
          if (!layer.node->inputs[i].node)
            bad("no edge leads to input port " + std::to_string(layer.inputs.list[i].id));
      });
  }

  const Layer& layer_of(int64_t id) const {
    const auto found = by_id_.find(id);
    if (found == by_id_.end())
      bad("an edge names layer " + std::to_string(id) + ", which does not exist");
    return layers_[found->second];
  }

  static size_t port_of(const Layer& layer, const StatedPorts& ports, int64_t id,
                        const char* what) {
    const auto found = ports.find(id);
    naming(layer, [&] {
      if (!found)
        bad(std::string("an edge names ") + what + " port " + std::to_string(id) +
            ", which does not exist");
    });
    return *found;
  }

  void collect_unsupported() {
    for (const Layer& layer : layers_) {
      const Node& node = *layer.node;
      if (node.def || node.is("Parameter") || node.is("Result") || node.is("Constant")) continue;
      if (++shared_.unsupported_layers > kMostNamedLayers) continue;
      std::string& list = shared_.unsupported;
      list += (list.empty() ? "\"" : ", \"") + printable(node.name) + "\" (" +
              printable(node.type) + ", " +
              (layer.version.empty() ? "no opset" : printable(layer.version));
      std::string known;
      for (const OpDef& op : op_registry())
        if (op.type == node.type)
          for (int opset : op.opsets) known += (known.empty() ? "" : " ") + std::to_string(opset);
      list += (known.empty() ? "" : "; known opsets: " + known) + ")";
    }
  }

  // Sets the type, shape and value that the file states for a Parameter or Constant.
  void fill(Layer& layer) {
    Node& node = *layer.node;
    if (!node.is("Parameter") && !node.is("Constant")) return;
    const StatedPort& port = layer.outputs.list[0];
    std::optional<StoredType> type = port.type;
    if (node.attributes.has("element_type")) {
      const std::string text = node.attributes.get_string("element_type");
      type = parse_element_type(text);
      if (!type) unsupported("the element type \"" + printable(text) + "\" is not supported");
    }
    if (!type) bad("has no element_type");
    Shape shape = port.shape;
    if (node.attributes.has("shape")) {
      const std::string text = node.attributes.get_string("shape");
      const auto parsed = parse_shape(text);
      if (!parsed && text.find("...") != std::string::npos)
        unsupported("its number of dimensions is open (shape \"" + printable(text) +
                    "\"); set a static shape when converting the model");
      if (!parsed) bad("shape=\"" + printable(text) + "\" is not a list of dimensions");
      shape = *parsed;
    }
    if (node.is("Constant")) {
      const int64_t offset = need_int(layer.xml.child("data"), "offset");
      const int64_t size = need_int(layer.xml.child("data"), "size");
      if (!shared_.weights) shared_.weights.emplace(shared_.open_weights());
      node.constant = shared_.weights->read(*type, shape, offset, size);
      return;
    }
    if (!port.layout.empty()) node.attributes.set("layout", port.layout);
    node.outputs[0].type = type->in_graph;
    node.outputs[0].shape = shape;
  }

  // Compares the inferred shapes and types with the stated ones.
  void compare(const Layer& layer) {
    for (size_t i = 0; i < layer.outputs.list.size(); ++i) {
      const StatedPort& stated = layer.outputs.list[i];
      const NodeOutput& inferred = layer.node->outputs[i];
      bool same = stated.shape.size() == inferred.shape.size();
      for (size_t d = 0; same && d < stated.shape.size(); ++d)
        same = stated.shape[d] == kDynamic || stated.shape[d] == inferred.shape[d] ||
               (layer.node->def && layer.node->def->rows_depend_on_data &&
                stated.shape[d] < inferred.shape[d]);
      if (!same)
        bad("output " + std::to_string(i) + " has the shape " + to_string(inferred.shape) +
            ", the file states " + to_string(stated.shape));
      // Does not check the type: quantisation tools state wrong ones in files that work everywhere
      // (the indices of MaxPool as FP16).
    }
  }

  Shared& shared_;
  size_t depth_;
  std::unique_ptr<Graph> graph_;
  std::vector<Layer> layers_;
  std::unordered_map<int64_t, size_t> by_id_;
  std::unordered_set<int> ids_;
};

IrModel read_model(std::string_view text, std::function<ByteSource()> open_weights,
                   const InputShapes& wanted, const CustomLayers* custom) {
  IrModel model;
  pugi::xml_document document;
  const pugi::xml_node net = parse(text, document, model.version);
  model.rt_info = read_rt_info(net);
  Shared shared{std::move(open_weights), wanted, custom, model.rt_info};
  NetReader reader(shared, 0);
  reader.read(net);
  if (shared.unsupported_layers > 0) {
    std::string list = shared.unsupported;
    if (shared.unsupported_layers > kMostNamedLayers)
      list += " and " + std::to_string(shared.unsupported_layers - kMostNamedLayers) + " more";
    unsupported(std::to_string(shared.unsupported_layers) +
                (shared.unsupported_layers == 1 ? " layer is" : " layers are") +
                " not supported: " + list +
                " (an OpenCL kernel of yours can compute them: config-file, CONFIG_FILE)");
  }
  model.graph = reader.finish();
  infer_shapes(*model.graph);
  reader.compare_all();
  model.notes = std::move(shared.notes);
  return model;
}

IrModel read(std::string_view xml, std::function<ByteSource()> open_weights,
             const std::string& where, const InputShapes& wanted, const CustomLayers* custom) {
  try {
    return read_model(xml, std::move(open_weights), wanted, custom);
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what(), error.place());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, where + ": not enough memory to read the model");
  }
}

}  // namespace

std::string weights_path(const std::string& xml_path) {
  return std::filesystem::path(xml_path).replace_extension(".bin").string();
}

IrModel read_ir(const std::string& xml_path, const InputShapes& wanted,
                const CustomLayers* custom) {
  const std::string text = read_text_file(xml_path);
  const auto open_weights = [&] {
    const std::filesystem::path path = weights_path(xml_path);
    try {
      file_beside(xml_path, path.filename().string());
      return open_file(path.string());
    } catch (const Error& error) {
      throw Error(
          error.code(),
          "its weights are needed beside it, in " + printable(path.string()) + ": " + error.what(),
          error.place());
    }
  };
  return read(text, open_weights, xml_path, wanted, custom);
}

IrModel read_ir(std::string_view xml, std::span<const std::byte> weights, const std::string& where,
                const InputShapes& wanted, const CustomLayers* custom) {
  const auto open_weights = [&] {
    return ByteSource{"the weights", weights.size(), [weights](size_t offset, auto to) {
                        std::copy_n(weights.data() + offset, to.size(), to.data());
                      }};
  };
  return read(xml, open_weights, where, wanted, custom);
}

}  // namespace clinfer
