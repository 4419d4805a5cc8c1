// Mutations by XPath on the XML, repairs by what the reader says of shapes.
#include "tests/fuzz/graph_mutator.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pugixml.hpp>
#include <random>
#include <sstream>
#include <vector>

#include "engine/ir/ir_reader.h"
#include "engine/passes/passes.h"
#include "engine/plan/plan.h"
#include "tests/devices.h"
#include "tests/fuzz/one_line.h"

namespace clinfer {

namespace {

constexpr int kMostRepairs = 64;

constexpr const char* kHostile[] = {
    "0",       "-1",         "1",          "2",    "3",     "7",     "16",
    "255",     "4096",       "65536",      "1e30", "nan",   "inf",   "-inf",
    "0.5",     "2147483647", "2147483648", "",     "true",  "false", "-9223372036854775808",
    "1e-45",   "x",          "1,1",        "0,0",  "-1,-1", "1,2,3", "9223372036854775807",
    "5,5,5,5", "-2147483648"};
constexpr int64_t kNumbers[] = {0,         1,         -1,        2,        3,     4,
                                8,         -2,        64,        1000,     65536, 0x7fffffff,
                                1LL << 31, 1LL << 40, INT64_MAX, INT64_MIN};

class Mutator {
 public:
  Mutator(FuzzModel& model, pugi::xml_document& document, unsigned seed)
      : model_(model), document_(document), random_(seed) {}

  void run() {
    for (size_t i = 0, n = 1 + below(4); i < n; ++i) once();
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }
  bool rarely() { return below(8) == 0; }

  template <typename T, size_t N>
  T any_of(const T (&values)[N]) {
    return values[below(N)];
  }

  pugi::xml_node any(const char* path) {
    const pugi::xpath_node_set found = document_.select_nodes(path);
    return found.empty() ? pugi::xml_node() : found[below(found.size())].node();
  }

  void once() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        return change_attribute(any("//data[../@type!='Const']"));
      case 3:
        return change_parameter();
      case 4:
        return change_edge();
      case 5:
        return change_operation();
      case 6:
        return change_constant();
      case 7:
        return change_attribute(any("//port_map/* | //back_edges/*"));
      case 8:
        return insert_layer();
      default:
        return change_weights();
    }
  }

  void change_attribute(pugi::xml_node node) {
    std::vector<pugi::xml_attribute> all(node.attributes_begin(), node.attributes_end());
    if (all.empty()) return;
    pugi::xml_attribute chosen = all[below(all.size())];
    if (rarely()) {
      node.remove_attribute(chosen);
      return;
    }
    chosen.set_value(changed(chosen.value()).c_str());
  }

  // One element of a list, or the whole text.
  std::string changed(const std::string& text) {
    if (below(3) == 0) return any_of(kHostile);
    std::vector<std::string> parts;
    std::istringstream list(text);
    for (std::string part; std::getline(list, part, ',');) parts.push_back(part);
    if (parts.empty()) return any_of(kHostile);
    const size_t at = below(parts.size());
    if (rarely()) {
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (rarely()) {
      parts.push_back(parts[at]);
    } else {
      int64_t value = 0;
      const std::string& part = parts[at];
      const auto parsed = std::from_chars(part.data(), part.data() + part.size(), value);
      if (parsed.ec == std::errc() && below(2))
        parts[at] =
            std::to_string(static_cast<int64_t>(static_cast<uint64_t>(value) + below(5) - 2));
      else
        parts[at] = any_of(kHostile);
    }
    std::string joined;
    for (const std::string& part : parts) joined += (joined.empty() ? "" : ",") + part;
    return joined;
  }

  void change_parameter() {
    pugi::xml_attribute shape = any("//layer[@type='Parameter']/data").attribute("shape");
    if (!shape) return;
    if (below(2)) {  // sizes that fit are more fun than those that do not
      std::string text = shape.value();
      const size_t digit = text.find_first_of("0123456789", below(text.size() + 1));
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + below(10));
      shape.set_value(text.c_str());
    } else {
      shape.set_value(changed(shape.value()).c_str());
    }
  }

  void change_edge() {
    pugi::xml_node edge = any("//edge"), other = any("//edge");
    if (!edge) return;
    switch (below(6)) {
      case 0:
        edge.parent().remove_child(edge);
        return;
      case 1:
        edge.parent().append_copy(other);
        return;
      case 2:
        for (const char* end : {"to-layer", "to-port"})
          edge.attribute(end).set_value(other.attribute(end).value());
        return;
      default:
        for (const char* end : {"from-layer", "from-port"})
          edge.attribute(end).set_value(other.attribute(end).value());
    }
  }

  void change_operation() {
    pugi::xml_node layer = any("//layer");
    const OpDef& def = op_registry()[below(op_registry().size())];
    if (below(2))
      layer.attribute("type").set_value(def.type.c_str());
    else
      layer.attribute("version").set_value(("opset" + std::to_string(1 + below(16))).c_str());
  }

  void change_constant() {
    pugi::xml_node data = any("//layer[@type='Const']/data"),
                   other = any("//layer[@type='Const']/data");
    if (!data) return;
    constexpr const char* types[] = {"f32", "f16", "i64", "i32", "u8", "i8", "boolean", "u1", "i4"};
    switch (below(4)) {
      case 0:
        data.attribute("element_type").set_value(any_of(types));
        return;
      case 1:
        data.attribute("offset").set_value(other.attribute("offset").value());
        return;
      case 2:
        for (const char* name : {"offset", "size", "shape", "element_type"})
          data.attribute(name).set_value(other.attribute(name).value());
        return;
      default:
        return change_attribute(data);
    }
  }

  // An operation of one input in the middle of an edge.
  void insert_layer() {
    pugi::xml_node edge = any("//edge");
    pugi::xml_node layers = edge.parent().parent().child("layers");
    if (!layers) return;
    constexpr const char* types[] = {"ReLU",    "Sigmoid", "ShapeOf", "Squeeze", "Exp",
                                     "Convert", "Abs",     "Result",  "SoftMax", "NonZero"};
    const int id = 100000 + static_cast<int>(below(100000));
    pugi::xml_node layer = layers.append_child("layer");
    layer.append_attribute("id") = id;
    layer.append_attribute("name") = id;
    layer.append_attribute("type") = any_of(types);
    layer.append_attribute("version") = "opset3";
    pugi::xml_node data = layer.append_child("data");
    data.append_attribute("axis") = 1;
    data.append_attribute("destination_type") = "i32";
    layer.append_child("input").append_child("port").append_attribute("id") = 0;
    layer.append_child("output").append_child("port").append_attribute("id") = 1;
    pugi::xml_node second = edge.parent().append_copy(edge);
    edge.attribute("to-layer").set_value(id);
    edge.attribute("to-port").set_value(0);
    second.attribute("from-layer").set_value(id);
    second.attribute("from-port").set_value(1);
  }

  // Most constants that matter are few integers.
  void change_weights() {
    pugi::xml_node data = any("//layer[@type='Const']/data");
    const size_t offset = data.attribute("offset").as_ullong(),
                 size = data.attribute("size").as_ullong();
    const std::string type = data.attribute("element_type").value();
    const size_t width = type == "i64" || type == "f64" ? 8 : type == "i8" || type == "u8" ? 1 : 4;
    if (offset > model_.weights.size() || size > model_.weights.size() - offset || size < width)
      return;
    char* at = model_.weights.data() + offset + below(size / width) * width;
    int64_t value = any_of(kNumbers);
    if (below(2)) {
      value = 0;
      std::memcpy(&value, at, width);
      value = static_cast<int64_t>(static_cast<uint64_t>(value) + below(5) - 2);
    }
    std::memcpy(at, &value, width);
  }

  FuzzModel& model_;
  pugi::xml_document& document_;
  std::mt19937 random_;
};

std::string text_of(const pugi::xml_document& document) {
  std::ostringstream text;
  document.save(text, "", pugi::format_raw);
  return text.str();
}

std::span<const std::byte> bytes_of(const FuzzModel& model) {
  return std::as_bytes(std::span(model.weights));
}

// Sets the shape that the error names: `... id 7): output 0 has the shape [1,2], the file states`.
bool repair(pugi::xml_document& document, const std::string& error) {
  const size_t id_at = error.find(", id "), output_at = error.find("): output "),
               shape_at = error.find(" has the shape ["), end = error.find("], the file states");
  if (end == std::string::npos || shape_at == std::string::npos || output_at == std::string::npos ||
      id_at == std::string::npos || output_at < id_at)
    return false;
  const std::string id = error.substr(id_at + 5, output_at - id_at - 5);
  const size_t output = std::strtoul(error.c_str() + output_at + 10, nullptr, 10);
  const std::string shape = error.substr(shape_at + 16, end - shape_at - 16);
  for (const pugi::xpath_node& layer :
       document.select_nodes(("//layer[@id='" + id + "']").c_str())) {
    size_t number = 0;
    for (pugi::xml_node port : layer.node().child("output").children("port")) {
      if (number++ != output) continue;
      while (port.remove_child("dim")) {
      }
      std::istringstream list(shape);
      for (std::string dim; std::getline(list, dim, ',');)
        port.append_child("dim").text().set(dim.c_str());
    }
  }
  return true;
}

DeviceTraits gpu() {
  DeviceTraits traits;
  traits.vendor = Vendor::nvidia;
  traits.compute_units = 100;
  traits.max_work_group = 1024;
  traits.vector_width = 1;
  traits.fp16 = true;
  traits.dot = DotProduct::ptx;
  traits.matrix = MatrixUnit::ptx;
  return traits;
}

}  // namespace

FuzzModel FuzzModel::split(std::string_view input) {
  const size_t end = input.find('\0');
  if (end == std::string_view::npos) return {std::string(input), {}};
  return {std::string(input.substr(0, end)), std::string(input.substr(end + 1))};
}

std::string FuzzModel::joined() const { return xml + '\0' + weights; }

FuzzModel mutated(FuzzModel model, unsigned seed) {
  pugi::xml_document document;
  if (!document.load_buffer(model.xml.data(), model.xml.size())) return model;
  Mutator(model, document, seed).run();
  for (int i = 0; i < kMostRepairs; ++i) {
    model.xml = text_of(document);
    try {
      read_ir(model.xml, bytes_of(model), "input");
      break;
    } catch (const Error& error) {
      if (!repair(document, error.what())) break;
    }
  }
  return model;
}

void compile_fuzz_model(const FuzzModel& model) {
  try {
    const IrModel read = read_ir(model.xml, bytes_of(model), "input");
    for (const DeviceTraits& traits : {test::cpu_with_dot_products(), gpu()}) {
      auto graph = read.graph->clone();
      run_passes(*graph, {traits, traits.fp16 ? ElementType::f16 : ElementType::f32});
      make_plan(std::move(graph), traits);
    }
  } catch (const Error& error) {
    must_be_one_line(error);
  }
}

}  // namespace clinfer
