// Infers shapes of custom layers, and assembles the programs of their kernels: the macros that
// OpenVINO documents for its GPU plug-in, then the user's sources with their own line numbers.
#include "kernels/custom/custom_layer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "kernels/base/numbers.h"
#include "kernels/base/text.h"
#include "kernels/kernel.h"

namespace clinfer {

namespace {

constexpr size_t kDimensions = 4;
constexpr size_t kUsualGroup = 64;  // work-items of a work-group if no size is stated
constexpr int64_t kMostItems = int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::unsupported, where + ": " + what);
}

// ---- shapes ------------------------------------------------------------------------------------

bool fits(const CustomUse::Stated& stated, const Shape& shape) {
  if (!stated.shape) return true;
  return std::equal(stated.shape->begin(), stated.shape->end(), shape.begin(), shape.end(),
                    [](int64_t wanted, int64_t is) { return wanted < 0 || wanted == is; });
}

// Returns the new and the stated batch size, if the inputs differ in nothing else.
std::optional<std::pair<int64_t, int64_t>> other_batch(const CustomUse& use,
                                                       std::span<const ValueInfo> inputs) {
  std::optional<std::pair<int64_t, int64_t>> batch;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (fits(use.inputs[i], inputs[i].shape)) continue;
    CustomUse::Stated rest = use.inputs[i];
    if (rest.shape->empty()) return {};
    const int64_t before = std::exchange(rest.shape->front(), -1);
    if (!fits(rest, inputs[i].shape)) return {};
    const std::pair now{before, inputs[i].shape[0]};
    if (batch && *batch != now) return {};
    batch = now;
  }
  return batch;
}

std::string text_of(std::span<const ValueInfo> inputs) {
  std::string text;
  for (const ValueInfo& input : inputs) text += (text.empty() ? "" : ", ") + to_string(input.shape);
  return text;
}

Shape output_shape(const CustomUse& use, std::span<const ValueInfo> inputs, size_t port) {
  const auto& stated = use.outputs[port].shape;
  if (!stated) {
    if (inputs.empty())
      refuse(use.layer->where, "the model states no shape for output " + std::to_string(port));
    return inputs[0].shape;
  }
  bool as_stated = true;
  for (size_t i = 0; i < inputs.size(); ++i) as_stated &= fits(use.inputs[i], inputs[i].shape);
  if (as_stated) {
    Shape shape = *stated;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      if (inputs.empty() || inputs[0].shape.size() != shape.size())
        refuse(use.layer->where, "dimension " + std::to_string(d) + " of output " +
                                     std::to_string(port) +
                                     " is open, and input 0 has no such dimension; convert the "
                                     "model with static shapes");
      shape[d] = inputs[0].shape[d];
    }
    return shape;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (use.inputs[i].shape == stated) return inputs[i].shape;
  if (const auto batch = other_batch(use, inputs);
      batch && !stated->empty() && stated->front() == batch->first) {
    Shape shape = *stated;
    shape[0] = batch->second;
    return shape;
  }
  refuse(use.layer->where, "the model states the shape " + to_string(*stated) + " of output " +
                               std::to_string(port) + "; what it is for inputs of " +
                               text_of(inputs) +
                               " is not known, because a custom layer's output follows only an "
                               "input of its own shape, or the batch");
}

// ---- values of attributes ------------------------------------------------------------------------

std::string as_int(const CustomLayer::Define& define, const std::string& text) {
  if (text == "true" || text == "false") return text == "true" ? "1" : "0";
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(define.where, "<Define name=\"" + printable(define.name) + "\">: \"" + printable(text) +
                             "\" is not an integer");
  return std::to_string(value);
}

std::string as_float(const CustomLayer::Define& define, const std::string& text) {
  char* end = nullptr;
  const double value = number_at(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    refuse(define.where, "<Define name=\"" + printable(define.name) + "\">: \"" + printable(text) +
                             "\" is not a number");
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value) || std::abs(value) > 3.4028235e38)
    return value < 0 ? "-INFINITY" : "INFINITY";
  char buffer[64];
  std::string number(buffer, std::to_chars(buffer, buffer + sizeof buffer,
                                           static_cast<float>(value), std::chars_format::scientific)
                                 .ptr);
  return number + "f";
}

std::string as_list(const CustomLayer::Define& define, const std::string& text, bool floats) {
  std::string list;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    part = trimmed(part);
    list += (list.empty() ? "" : ", ") + (floats ? as_float(define, part) : as_int(define, part));
  }
  return std::string("(") + (floats ? "float" : "int") + "[]){" + list + "}";
}

// Inserts text without a type into the program unchanged, on one line.
std::string as_text(const CustomLayer::Define& define, const std::string& text) {
  if (text.find_first_of("\r\n") != text.npos || (!text.empty() && text.back() == '\\'))
    refuse(define.where, "<Define name=\"" + printable(define.name) +
                             "\">: the value goes over several lines; state a type (int, float, "
                             "int[], float[])");
  return text;
}

// Refuses anything but plain values: a model, which may come from anywhere, must not write code.
void check_plain(const CustomLayer::Define& define, const std::string& text) {
  for (const char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("_.,+- ").find(c) == std::string_view::npos)
      refuse(define.where, "<Define name=\"" + printable(define.name) + "\" param=\"" +
                               printable(define.attribute) + "\">: the layer's \"" +
                               printable(text) + "\" is no number, list or word");
}

std::string value_of(const CustomLayer::Define& define, const OpDesc& desc) {
  std::string text = define.otherwise.value_or("");
  if (!define.attribute.empty()) {
    const auto& attributes = desc.attributes.all();
    if (const auto found = attributes.find(define.attribute); found != attributes.end()) {
      text = found->second;
      check_plain(define, text);
    } else if (!define.otherwise)
      refuse(define.where, "<Define name=\"" + printable(define.name) + "\" param=\"" +
                               printable(define.attribute) +
                               "\">: the layer has no such attribute, and there is no default");
  }
  if (define.type.empty()) return as_text(define, text);
  text = trimmed(text);
  if (define.type == "int") return as_int(define, text);
  if (define.type == "float") return as_float(define, text);
  return as_list(define, text, define.type == "float[]");
}

// ---- programs ------------------------------------------------------------------------------------

using Sizes = std::array<int64_t, kDimensions>;

struct CustomTensor {
  Sizes dims{}, pitches{};  // B, F, Y, X
  CustomFormat format = CustomFormat::bfyx;
  std::string type;  // in OpenCL C
};

std::string type_name(const TensorDesc& desc, const std::string& where) {
  switch (desc.type) {
    case ElementType::f32:
      return "float";
    case ElementType::f16:
      return "half";
    case ElementType::i8:
      return "char";
    case ElementType::u8:
      return "uchar";
    case ElementType::i16:
      return "short";
    case ElementType::i32:
      return "int";
    case ElementType::i64:
      return "long";
    default:
      refuse(where, "a tensor of type " + std::string(name_of(desc.type)) +
                        " cannot be given to a custom kernel");
  }
}

CustomTensor describe_tensor(const TensorDesc& desc, CustomFormat format,
                             const DeviceTraits& traits, const std::string& where) {
  if (desc.shape.size() != kDimensions || !desc.is_row_major())
    refuse(where, "the tensor does not lie in one piece");
  if (desc.elements() == 0) refuse(where, "a tensor has no elements");
  if (desc.type == ElementType::f16 && !traits.fp16)
    refuse(where, "the device computes no f16 (INFERENCE_PRECISION=f32)");
  CustomTensor tensor;
  tensor.format = format;
  tensor.type = type_name(desc, where);
  int64_t pitch = 1;
  for (size_t d = kDimensions; d-- > 0;) {
    const size_t place = memory_order(format)[d];
    tensor.dims[place] = desc.shape[d];
    tensor.pitches[place] = pitch;
    pitch *= desc.shape[d];
  }
  return tensor;
}

template <typename List>
void define_list(PlainStream& text, const std::string& name, const List& values) {
  text << "#define " << name << " (size_t[]){";
  for (size_t i = 0; i < values.size(); ++i) text << (i ? ", " : "") << values[i];
  text << "}\n#define " << name << "_SIZE " << values.size() << "\n";
}

void define_tensor(PlainStream& text, const std::string& name, const CustomTensor& tensor) {
  define_list(text, name + "_DIMS", tensor.dims);
  text << "#define " << name << "_TYPE " << tensor.type << "\n#define " << name << "_FORMAT_"
       << name_of(tensor.format) << "\n";
  // Tensors are dense, and a kernel gets the address of the first element.
  define_list(text, name + "_LOWER_PADDING", Sizes{});
  define_list(text, name + "_UPPER_PADDING", Sizes{});
  define_list(text, name + "_PITCHES", tensor.pitches);
  text << "#define " << name << "_OFFSET 0\n";
}

// Quotes a file's name for #line.
std::string quoted(const std::string& file) {
  std::string text = "\"";
  for (const char c : file) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return text + "\"";
}

class Planner {
 public:
  Planner(const OpDesc& desc, const DeviceTraits& traits)
      : desc_(desc), traits_(traits), use_(*desc.custom), layer_(*use_.layer) {
    if (!desc.tail.empty()) refuse(layer_.where, "a custom kernel has no tail");
    if (!use_.placed()) refuse(layer_.where, "its tensors have no format yet");
    for (size_t i = 0; i < desc.inputs.size(); ++i)
      inputs_.push_back(
          describe_tensor(desc.inputs[i], use_.input_formats[i], traits, layer_.where));
    for (size_t i = 0; i < desc.outputs.size(); ++i)
      outputs_.push_back(
          describe_tensor(desc.outputs[i], use_.output_formats[i], traits, layer_.where));
  }

  KernelPlan plan() const {
    KernelSpec spec;
    spec.source = layer_.entry;
    set_sizes(spec);
    spec.arguments = arguments();
    auto program = std::make_shared<OwnProgram>();
    program->entry = layer_.entry;
    program->options = layer_.options;
    program->where = layer_.where + ": custom layer " + printable(layer_.type);
    program->text = text(spec);
    spec.own = std::move(program);
    KernelPlan plan;
    plan.launches.push_back(std::move(spec));
    return plan;
  }

 private:
  std::vector<Argument> arguments() const {
    std::map<size_t, Argument> by_place;
    for (const CustomLayer::Tensor& tensor : layer_.tensors) {
      const auto& list = tensor.is_output ? desc_.outputs : desc_.inputs;
      if (tensor.port >= list.size())
        refuse(tensor.where, "port-index=\"" + std::to_string(tensor.port) + "\": the layer has " +
                                 std::to_string(list.size()) +
                                 (tensor.is_output ? " outputs" : " inputs"));
      by_place[tensor.argument] =
          tensor.is_output ? Argument::output_address(tensor.port, bytes_of(list[tensor.port]))
                           : Argument::input_address(tensor.port, bytes_of(list[tensor.port]));
    }
    for (size_t i = 0; i < layer_.data.size(); ++i) {
      const size_t port = use_.data_ports.at(i);
      by_place[layer_.data[i].argument] =
          Argument::input_address(port, bytes_of(desc_.inputs.at(port)));
    }
    std::vector<Argument> all;
    for (auto& [place, argument] : by_place) all.push_back(std::move(argument));
    return all;
  }

  static size_t bytes_of(const TensorDesc& desc) {
    return static_cast<size_t>(desc.elements()) * size_of(desc.type);
  }

  void set_sizes(KernelSpec& spec) const {
    const std::string& where = layer_.where_sizes;
    const size_t input = layer_.sizes_of_input.value_or(0);
    if (layer_.sizes_of_input && input >= inputs_.size())
      refuse(where, "<WorkSizes dim=\"input," + std::to_string(input) + "\">: the layer has " +
                        std::to_string(inputs_.size()) + " inputs");
    const Sizes& dims = layer_.sizes_of_input ? inputs_[input].dims : outputs_.at(0).dims;
    int64_t items = 1;
    for (size_t d = 0; d < layer_.global.size(); ++d) {
      spec.global[d] = size(layer_.global[d], "global", dims);
      if (__builtin_mul_overflow(items, static_cast<int64_t>(spec.global[d]), &items) ||
          items > kMostItems)
        refuse(where, "<WorkSizes>: too many work-items");
    }
    for (size_t d = 0; d < layer_.local.size(); ++d)
      spec.local[d] = size(layer_.local[d], "local", dims);
    if (layer_.local.empty()) choose_local(spec);
    size_t group = 1;
    for (size_t d = 0; d < 3; ++d) {
      if (spec.global[d] % spec.local[d] != 0)
        refuse(where, "<WorkSizes>: global is " + std::to_string(spec.global[d]) +
                          " in dimension " + std::to_string(d) +
                          ", which is no multiple of local, " + std::to_string(spec.local[d]));
      group *= spec.local[d];
    }
    if (group > traits_.max_work_group)
      refuse(where, "<WorkSizes>: local has " + std::to_string(group) +
                        " work-items, the device takes " + std::to_string(traits_.max_work_group));
  }

  size_t size(const std::string& expression, const char* attribute, const Sizes& dims) const {
    try {
      const int64_t value = evaluate_size(expression, dims);
      if (value < 1 || value > kMostItems)
        refuse(layer_.where_sizes, std::string("<WorkSizes ") + attribute + ">: \"" +
                                       printable(expression) + "\" is " + std::to_string(value));
      return static_cast<size_t>(value);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_argument) throw;
      refuse(layer_.where_sizes, std::string("<WorkSizes ") + attribute + ">: " + error.what());
    }
  }

  void choose_local(KernelSpec& spec) const {
    const size_t most = std::min(kUsualGroup, traits_.max_work_group);
    for (size_t items = most; items > 1; --items)
      if (spec.global[0] % items == 0) {
        spec.local[0] = items;
        return;
      }
  }

  std::string text(const KernelSpec& spec) const {
    PlainStream text;
    const auto is_half = [](const TensorDesc& desc) { return desc.type == ElementType::f16; };
    if (std::any_of(desc_.inputs.begin(), desc_.inputs.end(), is_half) ||
        std::any_of(desc_.outputs.begin(), desc_.outputs.end(), is_half))
      text << "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
    text << "// Custom Layer Built-ins\n#define NUM_INPUTS " << inputs_.size() << "\n";
    const size_t used = layer_.global.size();
    define_list(text, "GLOBAL_WORKSIZE",
                std::vector<size_t>(spec.global.data(), spec.global.data() + used));
    define_list(text, "LOCAL_WORKSIZE",
                std::vector<size_t>(spec.local.data(), spec.local.data() + used));
    for (size_t i = 0; i < inputs_.size(); ++i)
      define_tensor(text, "INPUT" + std::to_string(i), inputs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i)
      define_tensor(text, "OUTPUT" + std::to_string(i), outputs_[i]);
    text << "// Layer " << printable(desc_.name) << " using Custom Layer " << printable(layer_.type)
         << "\n// Custom Layer User Defines\n";
    for (const CustomLayer::Define& define : layer_.defines)
      text << "#define " << define.name << " " << value_of(define, desc_) << "\n";
    for (const CustomLayer::Source& source : layer_.sources)
      text << "#line 1 " << quoted(source.file) << "\n" << source.text << "\n";
    return text.str();
  }

  const OpDesc& desc_;
  const DeviceTraits& traits_;
  const CustomUse& use_;
  const CustomLayer& layer_;
  std::vector<CustomTensor> inputs_, outputs_;
};

KernelPlan plan_custom(const OpDesc& desc, const DeviceTraits& traits, const TuningPoint&) {
  return Planner(desc, traits).plan();
}

std::string reject_custom(const OpDesc& desc, const DeviceTraits& traits) {
  try {
    Planner(desc, traits).plan();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const KernelFamily kCustomFamily{
    .name = "custom",
    .reject = reject_custom,
    .space = [](const OpDesc&, const DeviceTraits&) { return std::vector<TuningPoint>(1); },
    .heuristic = [](const OpDesc&, const DeviceTraits&) { return TuningPoint{}; },
    .plan = plan_custom,
};

}  // namespace

const std::array<size_t, 4>& memory_order(CustomFormat format) {
  static const std::array<std::array<size_t, 4>, 4> orders{
      {{0, 1, 2, 3}, {0, 2, 3, 1}, {2, 3, 1, 0}, {1, 2, 3, 0}}};
  return orders.at(static_cast<size_t>(format));
}

std::string name_of(CustomFormat format) {
  static constexpr const char* kNames[] = {"BFYX", "BYXF", "YXFB", "FYXB", "ANY"};
  return kNames[static_cast<size_t>(format)];
}

std::vector<ValueInfo> custom_outputs(const CustomUse& use, const ShapeContext& context) {
  if (use.built_in && use.built_in->infer_shapes) {
    ShapeContext original{use.built_in->type, context.opset,        context.attributes,
                          context.inputs,     context.output_count, context.bodies};
    return use.built_in->infer_shapes(original);
  }
  std::vector<ValueInfo> outputs;
  for (size_t port = 0; port < use.outputs.size(); ++port) {
    const ElementType type = use.outputs[port].type   ? *use.outputs[port].type
                             : context.inputs.empty() ? ElementType::f32
                                                      : context.inputs[0].type;
    outputs.push_back({type, output_shape(use, context.inputs, port)});
  }
  return outputs;
}

const OpDef& custom_op() {
  static const auto& op = *new const OpDef{.type = "custom", .families = {&kCustomFamily}};
  return op;
}

}  // namespace clinfer
