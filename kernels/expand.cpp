// Infers shapes of operations that are written as steps, and evaluates them.
#include "kernels/expand.h"

#include <numeric>

#include "kernels/base/host_type.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

const OpDef& def_of(const std::string& type, int opset) {
  const OpDef* def = find_op(type, opset);
  if (!def) fail_unsupported("needs " + type + "-" + std::to_string(opset));
  return *def;
}

std::vector<ValueInfo> infer_expanded(const ShapeContext& context) {
  const Expansion expansion(def_of(context.type, context.opset), context);
  std::vector<ValueInfo> outputs;
  for (size_t value : expansion.outputs)
    outputs.push_back({expansion.info(value).type, expansion.shape(value), {}});
  return outputs;
}

void evaluate_expanded(const OpDesc& desc, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  std::vector<ValueInfo> infos;
  for (size_t i = 0; i < inputs.size(); ++i)
    infos.push_back({inputs[i].type(), inputs[i].shape(), inputs[i]});
  const ShapeContext context{desc.type, desc.opset, desc.attributes, infos, outputs.size()};
  const Expansion expansion(def_of(desc.type, desc.opset), context);
  std::vector<Tensor> values(inputs.begin(), inputs.end());
  const auto value_of = [&](size_t i) {
    return i < values.size() && !values[i].empty() ? values[i] : expansion.info(i).value;
  };
  for (const Expansion::Step& step : expansion.steps()) {
    OpDesc part;
    part.name = desc.name;
    part.type = step.type;
    part.opset = step.opset;
    part.attributes = step.attributes;
    part.own_inputs = step.inputs.size();
    for (size_t i : step.inputs) {
      part.constants.push_back(value_of(i));
      part.inputs.push_back(
          TensorDesc::row_major(part.constants.back().type(), part.constants.back().shape()));
    }
    std::vector<Tensor> results;
    for (size_t k = 0; k < step.output_count; ++k) {
      const ValueInfo& info = expansion.info(step.first_output + k);
      const ElementType type = host_type(info.type);
      part.outputs.push_back(TensorDesc::row_major(type, info.shape));
      results.push_back(Tensor::allocate(type, info.shape));
    }
    def_of(step.type, step.opset).evaluate(part, part.constants, results);
    values.resize(step.first_output);
    values.insert(values.end(), results.begin(), results.end());
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    outputs[k] = value_of(expansion.outputs.at(k)).convert(outputs[k].type());
}

}  // namespace

Expansion::Expansion(const OpDef& def, const ShapeContext& context)
    : context_(context), values_(context.inputs.begin(), context.inputs.end()) {
  def.expand(*this);
}

size_t Expansion::constant(Tensor value) {
  values_.push_back({value.type(), value.shape(), value});
  return values_.size() - 1;
}

size_t Expansion::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of(ElementType::i64, {static_cast<int64_t>(values.size())}, values));
}

size_t Expansion::number(float value) {
  return constant(Tensor::of(ElementType::f32, {}, std::vector<float>{value}));
}

size_t Expansion::step(std::string type, int opset, std::vector<size_t> inputs,
                       const Pairs& attributes, size_t output_count) {
  Attributes set;
  for (const auto& [name, value] : attributes) set.set(name, value);
  return step(std::move(type), opset, std::move(inputs), std::move(set), output_count);
}

size_t Expansion::step(std::string type, int opset, std::vector<size_t> inputs,
                       Attributes attributes, size_t output_count) {
  Step step{std::move(type),   opset,          std::move(attributes),
            std::move(inputs), values_.size(), output_count};
  std::vector<ValueInfo> infos;
  for (size_t i : step.inputs) infos.push_back(values_.at(i));
  std::vector<ValueInfo> results =
      def_of(step.type, opset)
          .infer_shapes({step.type, opset, step.attributes, infos, output_count});
  results.resize(output_count);
  for (ValueInfo& result : results) {
    checked_count(result.shape);
    result.value = {};
    values_.push_back(std::move(result));
  }
  steps_.push_back(std::move(step));
  return steps_.back().first_output;
}

size_t Expansion::reshape(size_t value, const Shape& to) {
  if (shape(value) == to) return value;
  return step("Reshape", 1, {value, ints(to)}, {{"special_zero", "false"}});
}

size_t Expansion::transpose(size_t value, const std::vector<int64_t>& order) {
  std::vector<int64_t> same(order.size());
  std::iota(same.begin(), same.end(), int64_t{0});
  return order == same ? value : step("Transpose", 1, {value, ints(order)});
}

size_t Expansion::slice(size_t value, size_t axis, int64_t begin, int64_t end, int64_t by) {
  if (begin == 0 && end == shape(value)[axis] && by == 1) return value;
  const auto one = [&](int64_t number) { return ints({number}); };
  return step("Slice", 8, {value, one(begin), one(end), one(by), one(static_cast<int64_t>(axis))});
}

size_t Expansion::convert(size_t value, ElementType type) {
  if (info(value).type == type) return value;
  return step("Convert", 1, {value}, {{"destination_type", std::string(name_of(type))}});
}

void compute_in_floats(Expansion& x, size_t count, bool rounded) {
  const ShapeContext& context = x.context();
  const ElementType type = context.inputs[0].type;
  if (is_float(type) || type == ElementType::boolean) return;
  std::vector<size_t> inputs(context.inputs.size());
  std::iota(inputs.begin(), inputs.end(), size_t{0});
  for (size_t i = 0; i < count; ++i) inputs[i] = x.convert(i, ElementType::f32);
  const size_t first =
      x.step(context.type, context.opset, inputs, context.attributes, context.output_count);
  for (size_t k = 0; k < context.output_count; ++k) x.outputs.push_back(first + k);
  if (rounded) x.outputs[0] = x.step("Round", 5, {first}, {{"mode", "half_to_even"}});
  x.outputs[0] = x.convert(x.outputs[0], type);
}

// Limits elements, because a few numbers in a model can ask for any size.
constexpr int64_t kMostElements = 1 << 24;

Tensor table(const Shape& shape) {
  if (checked_count(shape) > kMostElements)
    fail_unsupported("needs a table of the shape " + to_string(shape));
  return Tensor::allocate(ElementType::f32, shape);
}

std::vector<int64_t> index_list(int64_t count) {
  if (count > kMostElements)
    fail_unsupported("needs a list of " + std::to_string(count) + " indices");
  return std::vector<int64_t>(static_cast<size_t>(count));
}

size_t bytes_of_steps(const OpDef& def, const ShapeContext& context) {
  if (def.evaluate != evaluate_expanded) return 0;
  const Expansion expansion(def, context);
  size_t bytes = 0;
  for (const Expansion::Step& step : expansion.steps()) {
    std::vector<ValueInfo> infos;
    for (size_t i : step.inputs) infos.push_back(expansion.info(i));
    for (size_t k = 0; k < step.output_count; ++k) {
      const ValueInfo& value = expansion.info(step.first_output + k);
      const ElementType type = host_type(value.type);
      bytes += static_cast<size_t>(checked_count(value.shape)) * size_of(type);
    }
    bytes += bytes_of_steps(def_of(step.type, step.opset),
                            {step.type, step.opset, step.attributes, infos, step.output_count});
  }
  return bytes;
}

OpDef expanded_op(std::string type, std::vector<int> opsets, void (*expand)(Expansion&)) {
  return {.type = std::move(type),
          .opsets = std::move(opsets),
          .infer_shapes = infer_expanded,
          .evaluate = evaluate_expanded,
          .expand = expand};
}

}  // namespace clinfer
