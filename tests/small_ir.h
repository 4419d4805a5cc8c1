// Writes small models for tests as OpenVINO IR: layers with one output each, and constants.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/temporary_folder.h"

namespace clinfer::test {

// An f32 tensor whose values are all alike.
inline Tensor filled(const Shape& shape, float value) {
  return Tensor::of(ElementType::f32, shape,
                    std::vector<float>(static_cast<size_t>(count(shape)), value));
}

class SmallIr {
 public:
  explicit SmallIr(std::string name = "small") : name_(std::move(name)) {}

  // Adds a layer that reads these layers, and returns its number. An open dimension is -1. `data`:
  // attributes as XML has them; opset 0 stands for a version of the user's own. The output has the
  // type that they name (element_type, destination_type), else that of the first input. A Result
  // has no output, nor has a layer whose shape is empty, but for constants.
  int add(const std::string& type, int opset, const std::string& data,
          const std::vector<int>& inputs, const Shape& shape, const std::string& name = "") {
    const int id = static_cast<int>(shapes_.size());
    const std::string number = std::to_string(id);
    layers_ += "<layer id=\"" + number + "\" name=\"" + (name.empty() ? type + number : name) +
               "\" type=\"" + type + "\" version=\"" +
               (opset == 0 ? "mine" : "opset" + std::to_string(opset)) + "\"><data " + data + "/>";
    if (!inputs.empty()) layers_ += "<input>";
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto from = static_cast<size_t>(inputs[i]);
      layers_ += port(static_cast<int>(i), shapes_[from], types_[from]);
      edges_ += "<edge from-layer=\"" + std::to_string(from) + "\" from-port=\"" +
                std::to_string(outputs_[from]) + "\" to-layer=\"" + number + "\" to-port=\"" +
                std::to_string(i) + "\"/>";
    }
    if (!inputs.empty()) layers_ += "</input>";
    shapes_.push_back(shape);
    types_.push_back(
        type_in(data, inputs.empty() ? "f32" : types_[static_cast<size_t>(inputs[0])]));
    outputs_.push_back(static_cast<int>(inputs.size()));
    if (type == "Const" || (type != "Result" && !shape.empty()))
      layers_ += "<output>" + port(outputs_.back(), shape, types_.back()) + "</output>";
    layers_ += "</layer>";
    return id;
  }
  int input(const Shape& shape, const std::string& name = "in", const std::string& type = "f32") {
    return add("Parameter", 1, "element_type=\"" + type + "\" shape=\"" + listed(shape) + "\"", {},
               shape, name);
  }
  int constant(const Shape& shape, const std::vector<float>& values) {
    return constant(shape, "f32", values.data(), values.size() * sizeof(float));
  }
  int integers(const std::vector<int64_t>& values) {
    return constant({static_cast<int64_t>(values.size())}, "i64", values.data(),
                    values.size() * sizeof(int64_t));
  }
  int result(int from) { return add("Result", 1, "", {from}, {}); }

  std::string text() const {
    return "<net name=\"" + name_ + "\" version=\"11\"><layers>" + layers_ + "</layers><edges>" +
           edges_ + "</edges></net>";
  }
  std::span<const std::byte> weights() const { return weights_; }
  std::shared_ptr<const Model> read(const InputShapes& shapes = {},
                                    const std::string& config_file = {}) const {
    const std::string xml = text();
    return Model::read_bytes(std::as_bytes(std::span(xml)), weights_, name_, shapes, config_file);
  }
  // Writes NAME.xml and NAME.bin, and returns the path of the former.
  std::string write(const TemporaryFolder& folder) const {
    folder.write(name_ + ".bin", {reinterpret_cast<const char*>(weights_.data()), weights_.size()});
    return folder.write(name_ + ".xml", text());
  }

 private:
  int constant(const Shape& shape, const std::string& type, const void* values, size_t bytes) {
    const size_t offset = weights_.size();
    weights_.resize(offset + bytes);
    std::memcpy(weights_.data() + offset, values, bytes);
    return add("Const", 1,
               "element_type=\"" + type + "\" shape=\"" + listed(shape) + "\" offset=\"" +
                   std::to_string(offset) + "\" size=\"" + std::to_string(bytes) + "\"",
               {}, shape);
  }
  static std::string listed(const Shape& shape) {
    std::string text;
    for (const int64_t dim : shape)
      text += (text.empty() ? "" : ",") + (dim < 0 ? "?" : std::to_string(dim));
    return text;
  }
  // The type that attributes name, else `otherwise`.
  static std::string type_in(const std::string& data, const std::string& otherwise) {
    for (const std::string word : {" element_type=\"", " destination_type=\""})
      if (const size_t at = (" " + data).find(word); at != data.npos) {
        const size_t begin = at + word.size() - 1;
        return data.substr(begin, data.find('"', begin) - begin);
      }
    return otherwise;
  }
  static std::string port(int id, const Shape& shape, const std::string& type) {
    std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"" + type + "\">";
    for (const int64_t dim : shape) text += "<dim>" + std::to_string(dim) + "</dim>";
    return text + "</port>";
  }

  std::string name_, layers_, edges_;
  std::vector<Shape> shapes_;
  std::vector<std::string> types_;
  std::vector<int> outputs_;  // the number of each layer's output port
  std::vector<std::byte> weights_;
};

// A model whose output is the sum of all inputs so far, and of `begin` at first.
inline SmallIr sum_model(const Shape& shape, float begin, int opset = 6) {
  SmallIr ir;
  const int in = ir.input(shape);
  const auto elements = static_cast<size_t>(count(shape));
  const int initial = ir.constant(shape, std::vector<float>(elements, begin));
  const int state = ir.add("ReadValue", opset, "variable_id=\"sum\"", {initial}, shape);
  const int sum = ir.add("Add", 1, "", {in, state}, shape, "added");
  ir.add("Assign", opset, "variable_id=\"sum\"", {sum}, shape);
  ir.result(sum);
  return ir;
}

}  // namespace clinfer::test
