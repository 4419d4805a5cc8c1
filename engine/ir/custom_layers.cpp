// Reads and checks custom layers. Only elements, attributes and values of the schema are accepted.
#include "engine/ir/custom_layers.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "engine/graph/graph.h"
#include "engine/ir/ir_text.h"
#include "engine/ir/model_file.h"

namespace clinfer {

namespace {

constexpr size_t kMostFileBytes = size_t{16} << 20;  // of a file
constexpr size_t kMostLayers = 1000;    // limit of layers, and of defines or sources in each
constexpr int64_t kMostArguments = 64;  // of a kernel
constexpr size_t kLongestName = 128;

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  return !text.empty() && text.size() <= kLongestName && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || std::isdigit(static_cast<unsigned char>(c));
         });
}

class Document {
 public:
  Document(std::string_view text, const std::string& file,
           const std::function<std::string(const std::string&)>& read)
      : text_(text), file_(file), read_(read) {}

  std::vector<CustomLayer> layers() {
    if (text_.size() > kMostFileBytes) fail_at(0, "the file is too large");
    pugi::xml_document document;
    const pugi::xml_parse_result result =
        document.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!result)
      fail_at(result.offset, std::string("not well-formed XML: ") + result.description());
    std::vector<CustomLayer> all;
    for (const pugi::xml_node& xml : document.children()) {
      if (std::strcmp(xml.name(), "CustomLayer") != 0)
        fail(xml, "", "a <CustomLayer> is expected here");
      if (all.size() == kMostLayers) fail(xml, "", "too many custom layers");
      all.push_back(layer(xml));
    }
    return all;
  }

 private:
  [[noreturn]] void fail_at(std::ptrdiff_t offset, const std::string& what) const {
    throw Error(ErrorCode::bad_argument, where(offset) + ": " + what);
  }

  // Refuses an element, or its attribute.
  [[noreturn]] void fail(const pugi::xml_node& xml, const std::string& attribute,
                         const std::string& what) const {
    std::string element = std::string("<") + printable(xml.name());
    if (!attribute.empty())
      element +=
          " " + attribute + "=\"" + printable(xml.attribute(attribute.c_str()).value()) + "\"";
    throw Error(ErrorCode::bad_argument, where(xml) + ": " + element + ">: " + what);
  }

  std::string where(std::ptrdiff_t offset) const {
    const auto end =
        std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
    return file_ + ":" + std::to_string(1 + std::count(text_.begin(), text_.begin() + end, '\n'));
  }
  std::string where(const pugi::xml_node& xml) const { return where(xml.offset_debug()); }

  // Throws for attributes that are not in the list.
  void check_attributes(const pugi::xml_node& xml, std::initializer_list<const char*> known) const {
    std::string names;
    for (const char* name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    for (const pugi::xml_attribute& attribute : xml.attributes())
      if (std::none_of(known.begin(), known.end(),
                       [&](const char* name) { return std::strcmp(name, attribute.name()) == 0; }))
        fail(xml, printable(attribute.name()), "there is no such attribute; it may have " + names);
  }

  // Throws for children that are not in `known`, and for repeated ones that are in `once`.
  void check_children(const pugi::xml_node& xml, std::initializer_list<const char*> known,
                      std::initializer_list<const char*> once) const {
    std::string names;
    for (const char* name : known) names += std::string(names.empty() ? "<" : ", <") + name + ">";
    const auto is_in = [](std::initializer_list<const char*> list, const char* name) {
      return std::any_of(list.begin(), list.end(),
                         [&](const char* other) { return std::strcmp(other, name) == 0; });
    };
    std::set<std::string> seen;
    for (const pugi::xml_node& child : xml.children()) {
      if (!is_in(known, child.name()))
        fail(child, "",
             std::string("there is no such element in <") + xml.name() +
                 (names.empty() ? ">" : ">; it may have " + names));
      if (!seen.insert(child.name()).second && is_in(once, child.name()))
        fail(child, "", std::string("<") + xml.name() + "> has another one");
    }
  }

  std::string need(const pugi::xml_node& xml, const char* attribute) const {
    const pugi::xml_attribute found = xml.attribute(attribute);
    if (!found) fail(xml, "", std::string("the attribute ") + attribute + " is missing");
    if (found.empty() || *found.value() == '\0') fail(xml, attribute, "a value is needed");
    return found.value();
  }

  std::string need_one_of(const pugi::xml_node& xml, const char* attribute,
                          std::initializer_list<const char*> values) const {
    const std::string value = need(xml, attribute);
    std::string list;
    for (const char* one : values) {
      if (value == one) return value;
      list += (list.empty() ? "" : ", ") + std::string(one);
    }
    fail(xml, attribute, "allowed is " + list);
  }

  size_t need_index(const pugi::xml_node& xml, const char* attribute) const {
    const auto value = parse_int(need(xml, attribute));
    if (!value || *value < 0 || *value >= kMostArguments)
      fail(xml, attribute,
           "a number from 0 to " + std::to_string(kMostArguments - 1) + " is needed");
    return static_cast<size_t>(*value);
  }

  CustomLayer layer(const pugi::xml_node& xml) const {
    check_attributes(xml, {"name", "type", "version"});
    check_children(xml, {"Kernel", "Buffers", "CompilerOptions", "WorkSizes"},
                   {"Kernel", "Buffers", "CompilerOptions", "WorkSizes"});
    CustomLayer layer;
    layer.where = layer.where_sizes = where(xml);
    layer.type = need(xml, "name");
    if (layer.type.size() > kLongestName) fail(xml, "name", "the name is too long");
    for (const char* own :
         {"Parameter", "Result", "Const", "Constant", "TensorIterator", "Loop", "If"})
      if (layer.type == own) fail(xml, "name", "no kernel can take the place of it");
    need_one_of(xml, "type", {"SimpleGPU"});
    need_one_of(xml, "version", {"1"});
    for (const char* child : {"Kernel", "Buffers"})
      if (!xml.child(child)) fail(xml, "", std::string("<") + child + "> is missing");
    read_kernel(xml.child("Kernel"), layer);
    read_buffers(xml.child("Buffers"), layer);
    if (const pugi::xml_node options = xml.child("CompilerOptions")) {
      check_attributes(options, {"options"});
      check_children(options, {}, {});
      layer.options = need(options, "options");
      if (layer.options.find_first_of("\r\n") != std::string::npos)
        fail(options, "options", "the options go over several lines");
    }
    if (const pugi::xml_node sizes = xml.child("WorkSizes")) read_sizes(sizes, layer);
    return layer;
  }

  void read_kernel(const pugi::xml_node& xml, CustomLayer& layer) const {
    check_attributes(xml, {"entry"});
    check_children(xml, {"Source", "Define"}, {});
    layer.entry = need(xml, "entry");
    if (!is_identifier(layer.entry)) fail(xml, "entry", "this is not the name of a function");
    for (const pugi::xml_node& child : xml.children()) {
      if (layer.sources.size() + layer.defines.size() == kMostLayers)
        fail(child, "", "too many elements");
      if (std::strcmp(child.name(), "Source") == 0)
        layer.sources.push_back(source(child));
      else
        layer.defines.push_back(define(child));
    }
    if (layer.sources.empty()) fail(xml, "", "<Source> is missing");
  }

  CustomLayer::Source source(const pugi::xml_node& xml) const {
    check_attributes(xml, {"filename"});
    check_children(xml, {}, {});
    const std::filesystem::path name = need(xml, "filename");
    const std::string path = (std::filesystem::path(file_).parent_path() / name).string();
    try {
      std::string text = read_(path);
      if (text.size() > kMostFileBytes) fail(xml, "filename", "the file is too large");
      if (text.find('\0') != std::string::npos) fail(xml, "filename", "the file is not text");
      return {path, std::move(text)};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
      throw Error(ErrorCode::not_found, where(xml) + ": <Source filename=\"" +
                                            printable(name.string()) + "\">: " + error.what() +
                                            " (a path is relative to the folder of the XML file)");
    }
  }

  CustomLayer::Define define(const pugi::xml_node& xml) const {
    check_attributes(xml, {"name", "param", "default", "type"});
    check_children(xml, {}, {});
    CustomLayer::Define define;
    define.where = where(xml);
    define.name = need(xml, "name");
    // A macro consists of its name, optional parameters in parentheses, and an optional value.
    const std::string macro = define.name.substr(0, define.name.find_first_of(" \t("));
    if (!is_identifier(macro) || define.name.find_first_of("\r\n\\") != std::string::npos)
      fail(xml, "name", "this is not the name of a macro");
    define.attribute = xml.attribute("param").value();
    if (xml.attribute("default")) define.otherwise = xml.attribute("default").value();
    if (xml.attribute("type"))
      define.type = need_one_of(xml, "type", {"int", "float", "int[]", "float[]"});
    return define;
  }

  void read_buffers(const pugi::xml_node& xml, CustomLayer& layer) const {
    check_attributes(xml, {});
    check_children(xml, {"Tensor", "Data"}, {});
    std::set<size_t> arguments;
    for (const pugi::xml_node& child : xml.children()) {
      size_t argument = 0;
      if (std::strcmp(child.name(), "Tensor") == 0) {
        layer.tensors.push_back(tensor(child));
        argument = layer.tensors.back().argument;
        for (const CustomLayer::Tensor& other : layer.tensors)
          if (other.is_output == layer.tensors.back().is_output &&
              other.port == layer.tensors.back().port &&
              other.format != layer.tensors.back().format)
            fail(child, "format", "the same port has another format at " + other.where);
      } else {
        check_attributes(child, {"name", "arg-index"});
        check_children(child, {}, {});
        argument = need_index(child, "arg-index");
        layer.data.push_back({where(child), need(child, "name"), argument});
      }
      if (!arguments.insert(argument).second)
        fail(child, "arg-index", "another buffer is the same argument");
    }
    if (std::none_of(layer.tensors.begin(), layer.tensors.end(),
                     [](const auto& tensor) { return tensor.is_output; }))
      fail(xml, "", "there is no <Tensor type=\"output\">, so the kernel could give nothing");
    if (*arguments.rbegin() + 1 != arguments.size())
      fail(xml, "",
           "the arguments are not numbered without gaps: " + std::to_string(arguments.size()) +
               " buffers, and the last arg-index is " + std::to_string(*arguments.rbegin()));
  }

  CustomLayer::Tensor tensor(const pugi::xml_node& xml) const {
    check_attributes(xml, {"arg-index", "type", "port-index", "format"});
    check_children(xml, {}, {});
    CustomLayer::Tensor tensor;
    tensor.where = where(xml);
    tensor.argument = need_index(xml, "arg-index");
    tensor.is_output = need_one_of(xml, "type", {"input", "output"}) == "output";
    tensor.port = need_index(xml, "port-index");
    if (!xml.attribute("format")) return tensor;
    std::string format =
        need_one_of(xml, "format",
                    {"BFYX", "BYXF", "YXFB", "FYXB", "ANY", "bfyx", "byxf", "yxfb", "fyxb", "any"});
    std::transform(format.begin(), format.end(), format.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const CustomFormat one : {CustomFormat::bfyx, CustomFormat::byxf, CustomFormat::yxfb,
                                   CustomFormat::fyxb, CustomFormat::any})
      if (format == name_of(one)) tensor.format = one;
    return tensor;
  }

  void read_sizes(const pugi::xml_node& xml, CustomLayer& layer) const {
    check_attributes(xml, {"global", "local", "dim"});
    check_children(xml, {}, {});
    layer.where_sizes = where(xml);
    if (xml.attribute("global")) layer.global = expressions(xml, "global");
    if (xml.attribute("local")) layer.local = expressions(xml, "local");
    if (!layer.local.empty() && layer.local.size() != layer.global.size())
      fail(xml, "local", "global has " + std::to_string(layer.global.size()) + " dimensions");
    if (!xml.attribute("dim")) return;
    const std::string dim = need(xml, "dim");
    if (dim == "output") return;
    if (dim == "input") {
      layer.sizes_of_input = 0;
      return;
    }
    const auto number = dim.rfind("input", 0) == 0 && (dim[5] == ',' || dim[5] == ' ')
                            ? parse_int(dim.substr(dim.find_first_not_of(" ", 6) == dim.npos
                                                       ? dim.size()
                                                       : dim.find_first_not_of(" ", 6)))
                            : std::nullopt;
    if (!number || *number < 0 || *number >= kMostArguments)
      fail(xml, "dim", "allowed is output, or input,N");
    layer.sizes_of_input = static_cast<size_t>(*number);
  }

  std::vector<std::string> expressions(const pugi::xml_node& xml, const char* attribute) const {
    std::vector<std::string> list;
    std::istringstream parts(need(xml, attribute));
    for (std::string part; std::getline(parts, part, ',');) {
      try {
        check_size(part);
      } catch (const Error& error) {
        fail(xml, attribute, error.what());
      }
      list.push_back(part);
    }
    if (list.empty() || list.size() > 3) fail(xml, attribute, "1 to 3 sizes are needed");
    return list;
  }

  const std::string_view text_;
  const std::string& file_;
  const std::function<std::string(const std::string&)>& read_;
};

bool is_file(const std::string& path) {
  std::error_code cannot_tell;
  return std::filesystem::is_regular_file(path, cannot_tell);
}

}  // namespace

std::shared_ptr<const CustomLayer> CustomLayers::find(const std::string& type) const {
  const auto found = layers_.find(type);
  return found == layers_.end() ? nullptr : found->second;
}

void CustomLayers::add(std::string_view xml, const std::string& file,
                       const std::function<std::string(const std::string&)>& read) {
  files_.push_back(file);
  for (CustomLayer& layer : Document(xml, file, read).layers()) {
    for (const CustomLayer::Source& source : layer.sources) files_.push_back(source.file);
    const auto made = std::make_shared<const CustomLayer>(std::move(layer));
    const auto [known, is_new] = layers_.emplace(made->type, made);
    if (!is_new)
      throw Error(ErrorCode::bad_argument, made->where + ": <CustomLayer name=\"" +
                                               printable(made->type) + "\">: another one is at " +
                                               known->second->where);
  }
}

std::vector<std::string> split_config_files(const std::string& value) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  std::set<size_t> whole;  // indices of words that were in quotes
  for (const char c : value) {
    if (c == '"') {
      if (!open) words.emplace_back();
      open = true;
      quoted = !quoted;
      whole.insert(words.size() - 1);
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  if (quoted)
    throw Error(ErrorCode::bad_argument, "CONFIG_FILE=" + printable(value) + ": a '\"' is missing");
  if (is_file(value)) return {value};
  // Joins several words to one name if a file has that name.
  std::vector<std::string> files;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    size_t last = i;
    while (!is_file(name) && !whole.contains(last) && last + 1 < words.size())
      name += " " + words[++last];
    const bool found = is_file(name);
    files.push_back(found ? name : words[i]);
    if (found) i = last;
  }
  return files;
}

std::shared_ptr<const CustomLayers> read_custom_layers(const std::string& config_file) {
  auto layers = std::make_shared<CustomLayers>();
  for (const std::string& file : split_config_files(config_file)) try {
      layers->add(read_text_file(file), file, read_text_file);
    } catch (const Error& error) {
      const std::string value =
          error.code() == ErrorCode::not_found ? "=" + printable(config_file) : "";
      throw Error(error.code(), "CONFIG_FILE" + value + ": " + error.what(), error.place());
    }
  return layers;
}

void set_custom(Node& node, std::shared_ptr<const CustomLayer> layer, const std::string& type,
                std::vector<CustomUse::Stated> inputs, std::vector<CustomUse::Stated> outputs) {
  auto use = std::make_shared<CustomUse>();
  use->type = type;
  use->built_in = find_op(node.type, node.opset);
  use->layer = std::move(layer);
  use->inputs = std::move(inputs);
  use->outputs = std::move(outputs);
  node.custom = std::move(use);
  node.def = &custom_op();
  node.type = "custom " + type;  // keeps passes from taking it for an operation that they know
}

}  // namespace clinfer
