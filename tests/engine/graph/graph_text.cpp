// Reading and writing the short text form of graphs.
#include "tests/engine/graph/graph_text.h"

#include <map>
#include <sstream>
#include <vector>

#include "engine/graph/insertion.h"
#include "tests/kernels/op_test.h"

namespace clinfer::test {

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

class Reader {
 public:
  std::unique_ptr<Graph> read(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      line_ = trimmed(line);
      if (!line_.empty()) read_line();
    }
    return std::move(graph_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::bad_argument, why + ": " + line_);
  }

  void read_line() {
    if (line_.starts_with("result ")) {
      add("out" + std::to_string(graph_->results.size())).result(edge(trimmed(line_.substr(7))));
      return;
    }
    const size_t equals = line_.find(" = ");
    if (equals == std::string::npos) refuse("neither a result nor name = value");
    const std::vector<std::string> names = split(line_.substr(0, equals), ',');
    const std::string value = trimmed(line_.substr(equals + 3));
    Edge first;
    if (value.starts_with("parameter "))
      first = parameter(names[0], value.substr(10));
    else if (value.starts_with("random["))
      first = add(names[0]).constant(random_tensor(shape_in(value), -1, 1, ++seed_));
    else if (value.find('(') == std::string::npos)
      first = constant(names[0], value);
    else
      first = operation(names, value);
    for (size_t port = 0; port < names.size(); ++port)
      edges_[names[port]] = {first.node, static_cast<int>(port)};
  }

  Shape shape_in(const std::string& text) const {
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string::npos || close == std::string::npos) refuse("no shape");
    Shape shape;
    for (const std::string& dim : split(text.substr(open + 1, close - open - 1), ','))
      shape.push_back(std::stoll(dim));
    return shape;
  }

  ElementType type_in(const std::string& text) const {
    const auto type = element_type_of(text.substr(0, text.find('[')));
    if (!type) refuse("no element type");
    return *type;
  }

  static std::optional<ElementType> element_type_of(const std::string& name) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::i64,
                                   ElementType::i32, ElementType::u8, ElementType::boolean})
      if (name_of(type) == name) return type;
    return {};
  }

  Edge parameter(const std::string& name, const std::string& value) {
    return add(name).parameter(type_in(value), shape_in(value));
  }

  Edge constant(const std::string& name, const std::string& value) {
    const Shape shape = shape_in(value);
    std::vector<double> numbers;
    for (const std::string& number : split(value.substr(value.find(']') + 1), ' '))
      numbers.push_back(std::stod(number));
    if (static_cast<int64_t>(numbers.size()) != count(shape)) refuse("not as many values");
    return add(name).constant(Tensor::of(type_in(value), shape, numbers));
  }

  Edge operation(const std::vector<std::string>& names, const std::string& value) {
    const size_t open = value.find('('), close = value.find(')');
    const size_t dash = value.find('-');
    if (dash == std::string::npos || dash > open || close == std::string::npos)
      refuse("an operation is Type-opset(inputs)");
    std::vector<Edge> inputs;
    for (const std::string& input : split(value.substr(open + 1, close - open - 1), ','))
      inputs.push_back(edge(input));
    std::map<std::string, std::string> attributes;
    for (const std::string& attribute : split(value.substr(close + 1), ' ')) {
      const size_t equals = attribute.find('=');
      if (equals == std::string::npos) refuse("an attribute is name=value");
      attributes[attribute.substr(0, equals)] = attribute.substr(equals + 1);
    }
    return add(names[0]).op(value.substr(0, dash),
                            std::stoi(value.substr(dash + 1, open - dash - 1)), inputs, attributes,
                            names.size());
  }

  Edge edge(const std::string& name) const {
    const auto found = edges_.find(name);
    if (found == edges_.end()) refuse("nothing is called " + name);
    return found->second;
  }

  Insertion add(const std::string& name) { return {*graph_, nullptr, name}; }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::map<std::string, Edge> edges_;
  std::string line_;
  unsigned seed_ = 0;
};

class Writer {
 public:
  std::string write(const Graph& graph) {
    for (const Node* parameter : graph.parameters)
      names_[parameter] = "in" + std::to_string(inputs_++);
    for (const auto& node : graph.nodes()) {
      if (node->is("Constant") || node->is("Parameter")) continue;
      if (node->is("Result")) {
        out_ << "result " << name_of_edge(node->inputs[0]) << "\n";
        continue;
      }
      write_operation(*node);
    }
    return out_.str();
  }

 private:
  void write_operation(const Node& node) {
    names_[&node] = letters(operations_++);
    out_ << names_[&node] << " = " << node.type << "(";
    for (size_t i = 0; i < own_inputs(node); ++i)
      out_ << (i ? ", " : "") << name_of_edge(node.inputs[i]);
    out_ << ")";
    for (const PostOp& step : node.tail) {
      out_ << " + " << step.function;
      if (!step.is_unary())
        out_ << "(" << name_of_edge(node.inputs[static_cast<size_t>(step.operand)]) << ")";
    }
    out_ << "\n";
  }

  std::string name_of_edge(const Edge& edge) const {
    if (edge.node->is("Constant")) return constant(edge.node->constant);
    return names_.at(edge.node) + (edge.port ? "." + std::to_string(edge.port) : "");
  }

  static std::string constant(const Tensor& value) {
    constexpr int64_t kFew = 4;
    std::ostringstream text;
    if (value.elements() > kFew) {
      text << name_of(value.type()) << to_string(value.shape());
      return text.str();
    }
    const std::vector<float> numbers = value.to_floats();
    for (size_t i = 0; i < numbers.size(); ++i) text << (i ? " " : "") << numbers[i];
    return text.str();
  }

  // a, b, ..., z, aa, ab, ...
  static std::string letters(int number) {
    std::string name(1, static_cast<char>('a' + number % 26));
    return number < 26 ? name : letters(number / 26 - 1) + name;
  }

  std::map<const Node*, std::string> names_;
  std::ostringstream out_;
  int inputs_ = 0, operations_ = 0;
};

}  // namespace

std::unique_ptr<Graph> graph_of(const std::string& text) { return Reader().read(text); }

std::string text_of(const Graph& graph) { return Writer().write(graph); }

}  // namespace clinfer::test
