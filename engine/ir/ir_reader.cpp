// XML to layers (as the file states them), layers and edges to graph nodes, then shapes: inferred,
// and compared with the file's.
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

#include "engine/ir/ir_text.h"
#include "engine/ir/model_file.h"
#include "engine/ir/rt_info.h"
#include "engine/ir/weights.h"

namespace clinfer {

namespace {

constexpr size_t kMostNamedLayers = 1000;  // in one message about unsupported layers

[[noreturn]] void bad(const std::string& what) { throw Error(ErrorCode::bad_model, what); }
[[noreturn]] void unsupported(const std::string& what) {
  throw Error(ErrorCode::unsupported, what);
}

// An input or output as a <port> states it.
struct StatedPort {
  int64_t id = 0;
  Shape shape;                     // kDynamic where open
  std::optional<StoredType> type;  // none where the file says nothing
  std::vector<std::string> names;
  std::string layout;  // "[N,C,H,W]" or ""
};

// The ports of one side of a layer, in the order of the file.
struct StatedPorts {
  std::vector<StatedPort> list;
  std::vector<std::pair<int64_t, size_t>> by_id;  // sorted; where in the list

  std::optional<size_t> find(int64_t id) const {
    const auto found = std::lower_bound(by_id.begin(), by_id.end(), std::make_pair(id, size_t{0}));
    return found == by_id.end() || found->first != id ? std::nullopt : std::optional(found->second);
  }
};

struct Layer {
  pugi::xml_node xml;
  std::string version;  // as written
  StatedPorts inputs, outputs;
  Node* node = nullptr;
};

// Earlier and other writers' spellings of the graph's type names.
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

class Reader {
 public:
  Reader(std::string_view xml, std::function<MappedFile()> open_weights)
      : text_(xml), open_weights_(std::move(open_weights)) {}

  IrModel read() {
    const pugi::xml_node net = parse();
    graph_ = std::make_unique<Graph>();
    graph_->name = net.attribute("name").value();
    read_layers(net);
    read_edges(net);
    refuse_unsupported();
    for (Layer& layer : layers_) naming(layer, [&] { fill(layer); });
    graph_->sort();
    infer_shapes(*graph_);
    for (const Layer& layer : layers_) naming(layer, [&] { compare(layer); });
    model_.graph = std::move(graph_);
    model_.rt_info = read_rt_info(net);
    return std::move(model_);
  }

 private:
  template <typename Work>
  static void naming(const Layer& layer, Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      throw Error(error.code(), label(*layer.node) + ": " + error.what());
    }
  }

  // The <net> element, or an error that says what the file is instead.
  pugi::xml_node parse() {
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) bad("the file is empty");
    const bool utf16 =
        text_.size() >= 2 && (text_.substr(0, 2) == "\xff\xfe" || text_.substr(0, 2) == "\xfe\xff");
    if (!utf16 && text_.substr(0, 4096).find('\0') != std::string_view::npos)
      bad("not XML but binary data; an OpenVINO IR .xml is needed (convert ONNX, TensorFlow and "
          "other models first)");
    const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
    const pugi::xml_node root = document_.document_element();
    const bool is_net = std::strcmp(root.name(), "net") == 0;
    if (!result) {
      const bool binary =
          std::any_of(text_.begin(), text_.begin() + std::min<size_t>(text_.size(), 64),
                      [](char c) { return static_cast<unsigned char>(c) < 9; });
      if (binary || result.status == pugi::status_no_document_element)
        bad("not XML; an OpenVINO IR .xml is needed (convert ONNX, TensorFlow and other models "
            "first)");
      const auto end =
          text_.begin() + std::min<ptrdiff_t>(result.offset, static_cast<ptrdiff_t>(text_.size()));
      bad(std::string(is_net || !root ? "" : "not an OpenVINO IR and ") +
          "not well-formed XML: " + result.description() + " (line " +
          std::to_string(1 + std::count(text_.begin(), end, '\n')) + ")");
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
    model_.version = static_cast<int>(*version);
    return root;
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
      throw Error(error.code(), "layer \"" + printable(node->name) + "\": " + error.what());
    }
    naming(layer, [&] {
      if (!ids_.insert(node->id).second) bad("another layer has the same id");
      if (node->type.empty()) bad("<layer> has no type");
      for (const pugi::xml_attribute& attribute : xml.child("data").attributes())
        node->attributes.set(attribute.name(), attribute.value());
      layer.inputs = read_ports(xml.child("input"));
      layer.outputs = read_ports(xml.child("output"));
      check_port_counts(*node, layer);
    });
    node->inputs.resize(layer.inputs.list.size());
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
      node->def = find_op(node->type, node->opset);
    graph_->nodes.push_back(std::move(node));
    layers_.push_back(std::move(layer));
  }

  static void check_port_counts(const Node& node, const Layer& layer) {
    const bool source = node.is("Parameter") || node.is("Constant"), sink = node.is("Result");
    if (source && (!layer.inputs.list.empty() || layer.outputs.list.size() != 1))
      bad("must have no input and one output");
    if (sink && (layer.inputs.list.size() != 1 || !layer.outputs.list.empty()))
      bad("must have one input and no output");
    if (!source && !sink && layer.outputs.list.empty()) bad("has no output");
  }

  void read_edges(const pugi::xml_node& net) {
    for (const pugi::xml_node& xml : net.child("edges").children("edge")) {
      const int64_t from = need_int(xml, "from-layer"), from_port = need_int(xml, "from-port");
      const int64_t to = need_int(xml, "to-layer"), to_port = need_int(xml, "to-port");
      const Layer& source = layer_of(from);
      const Layer& target = layer_of(to);
      const size_t output = port_of(source, source.outputs, from_port, "output");
      const size_t input = port_of(target, target.inputs, to_port, "input");
      Edge& edge = target.node->inputs[input];
      naming(target, [&] {
        if (edge.node) bad("two edges lead to input port " + std::to_string(to_port));
      });
      edge = {source.node, static_cast<int>(output)};
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

  void refuse_unsupported() const {
    size_t number = 0;
    std::string list;
    for (const Layer& layer : layers_) {
      const Node& node = *layer.node;
      if (node.def || node.is("Parameter") || node.is("Result") || node.is("Constant")) continue;
      if (++number > kMostNamedLayers) continue;
      list += (list.empty() ? "\"" : ", \"") + printable(node.name) + "\" (" +
              printable(node.type) + ", " +
              (layer.version.empty() ? "no opset" : printable(layer.version));
      std::string known;
      for (const OpDef& op : op_registry())
        if (op.type == node.type)
          for (int opset : op.opsets) known += (known.empty() ? "" : " ") + std::to_string(opset);
      list += (known.empty() ? "" : "; known opsets: " + known) + ")";
    }
    if (number == 0) return;
    if (number > kMostNamedLayers)
      list += " and " + std::to_string(number - kMostNamedLayers) + " more";
    unsupported(std::to_string(number) + (number == 1 ? " layer is" : " layers are") +
                " not supported: " + list);
  }

  // What a Parameter or Constant states about itself.
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
      if (!weights_) weights_.emplace(open_weights_());
      node.constant = weights_->read(*type, shape, offset, size);
      return;
    }
    if (!port.layout.empty()) node.attributes.set("layout", port.layout);
    fix_batch(node, port.layout, shape);
    node.outputs[0].type = type->in_graph;
    node.outputs[0].shape = shape;
  }

  // An open batch dimension becomes 1, any other open dimension is refused.
  void fix_batch(const Node& node, const std::string& layout, Shape& shape) {
    size_t batch = 0;
    if (const size_t n = layout.find('N'); n != std::string::npos)
      batch = static_cast<size_t>(
          std::count(layout.begin(), layout.begin() + static_cast<ptrdiff_t>(n), ','));
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != kDynamic) continue;
      if (i != batch || shape.size() < 2)
        unsupported(
            "dimension " + std::to_string(i) + " of this input is open (shape \"" +
            printable(node.attributes.get_string("shape", "")) +
            "\"); set a static shape when converting the model (only the batch may be open)");
      shape[i] = 1;
      model_.notes.push_back(label(node) + ": the open batch dimension is taken as 1");
    }
  }

  // The inferred shapes and types against the stated ones.
  void compare(const Layer& layer) {
    for (size_t i = 0; i < layer.outputs.list.size(); ++i) {
      const StatedPort& stated = layer.outputs.list[i];
      const NodeOutput& inferred = layer.node->outputs[i];
      bool same = stated.shape.size() == inferred.shape.size();
      for (size_t d = 0; same && d < stated.shape.size(); ++d)
        same = stated.shape[d] == kDynamic || stated.shape[d] == inferred.shape[d] ||
               (layer.node->def && layer.node->def->upper_bounds &&
                stated.shape[d] < inferred.shape[d]);
      if (!same)
        bad("output " + std::to_string(i) + " has the shape " + to_string(inferred.shape) +
            ", the file states " + to_string(stated.shape));
      // Quantisation tools state wrong types in files that work everywhere (the indices of MaxPool
      // as FP16).
      if (stated.type && stated.type->in_graph != inferred.type)
        model_.notes.push_back(label(*layer.node) + ": output " + std::to_string(i) +
                               " has the type " + std::string(name_of(inferred.type)) +
                               ", the file states " + std::string(name_of(stated.type->in_graph)));
    }
  }

  std::string_view text_;
  std::function<MappedFile()> open_weights_;
  pugi::xml_document document_;
  std::unique_ptr<Graph> graph_;
  std::vector<Layer> layers_;
  std::unordered_map<int64_t, size_t> by_id_;
  std::unordered_set<int> ids_;
  std::optional<Weights> weights_;
  IrModel model_;
};

// Operations quote attributes as the file has them, with whatever control characters.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

IrModel read(std::string_view xml, std::function<MappedFile()> open_weights,
             const std::string& where) {
  try {
    return Reader(xml, std::move(open_weights)).read();
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + one_line(error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, where + ": not enough memory to read the model");
  }
}

}  // namespace

IrModel read_ir(const std::string& xml_path) {
  const std::string text = read_text_file(xml_path);
  const auto open_weights = [&] {
    const std::string path = std::filesystem::path(xml_path).replace_extension(".bin").string();
    try {
      return map_file(path);
    } catch (const Error& error) {
      throw Error(error.code(), std::string("its weights are needed beside it: ") + error.what());
    }
  };
  return read(text, open_weights, xml_path);
}

IrModel read_ir(std::string_view xml, std::span<const std::byte> weights,
                const std::string& where) {
  const auto open_weights = [&] {
    // Operator new aligns as much as any element type needs.
    const auto copy = std::make_shared<std::vector<std::byte>>(weights.begin(), weights.end());
    return MappedFile{"the weights", *copy, copy};
  };
  return read(xml, open_weights, where);
}

}  // namespace clinfer
