// FusedConvolution: shapes, reference implementation, and when maxima may be taken before a tail.
#include "kernels/convolution/tiles/fused_convolution.h"

#include <algorithm>
#include <array>

#include "kernels/convolution/tiles/convolution_families.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

const std::string kConvolution = "Convolution", kMaxPool = "MaxPool", kQuantize = "Quantize";

std::vector<ValueInfo> infer_shapes(const ShapeContext& context) {
  const Attributes quantize = without_prefix(context.attributes, kQuantizePrefix),
                   pool = without_prefix(context.attributes, kPoolPrefix);
  const size_t own = quantize.all().empty() ? 2 : 4;
  check_inputs(context, own, own);
  std::vector<ValueInfo> inputs(context.inputs.begin(), context.inputs.begin() + 2);
  if (!quantize.all().empty()) inputs[0].type = ElementType::u8;
  std::vector<ValueInfo> outputs =
      find_op(kConvolution, 1)->infer_shapes({kConvolution, 1, context.attributes, inputs, 1});
  if (pool.all().empty()) return outputs;
  return find_op(kMaxPool, 1)->infer_shapes({kMaxPool, 1, pool, outputs, 1});
}

void evaluate(const OpDesc& desc, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::array<Tensor, 2> data{inputs[0], inputs[1]};
  if (quantizes_data(desc)) {
    OpDesc quantize;
    quantize.type = kQuantize;
    quantize.attributes = without_prefix(desc.attributes, kQuantizePrefix);
    for (const size_t i : {0, 2, 3}) {
      quantize.inputs.push_back(TensorDesc::row_major(inputs[i].type(), inputs[i].shape()));
      quantize.constants.push_back(i == 0 ? Tensor() : inputs[i]);
    }
    quantize.own_inputs = 3;
    quantize.outputs = {TensorDesc::row_major(ElementType::u8, inputs[0].shape())};
    const std::array<Tensor, 3> read{inputs[0], inputs[2], inputs[3]};
    data[0] = Tensor::allocate(ElementType::u8, inputs[0].shape());
    find_op(kQuantize, 1)->evaluate(quantize, read, std::span(data).first(1));
  }
  const OpDesc convolution = convolution_within(desc);
  if (!stores_maxima(desc)) return find_op(kConvolution, 1)->evaluate(convolution, data, outputs);
  const Shape shape = convolution_problem(convolution).shape.output(data[0].shape().size());
  std::array<Tensor, 1> sums{Tensor::allocate(ElementType::f32, shape)};
  find_op(kConvolution, 1)->evaluate(convolution, data, sums);
  OpDesc pool;
  pool.type = kMaxPool;
  pool.attributes = without_prefix(desc.attributes, kPoolPrefix);
  pool.inputs = {TensorDesc::row_major(ElementType::f32, shape)};
  find_op(kMaxPool, 1)->evaluate(pool, sums, outputs);
}

}  // namespace

Attributes without_prefix(const Attributes& attributes, const std::string& prefix) {
  Attributes found;
  for (const auto& [name, value] : attributes.all())
    if (name.starts_with(prefix)) found.set(name.substr(prefix.size()), value);
  return found;
}

void add_with_prefix(Attributes& attributes, const std::string& prefix, const Attributes& other) {
  for (const auto& [name, value] : other.all()) attributes.set(prefix + name, value);
}

OpDesc convolution_within(const OpDesc& desc) {
  OpDesc convolution = desc;
  convolution.type = kConvolution;
  if (quantizes_data(desc)) convolution.inputs[0].type = ElementType::u8;
  return convolution;
}

bool quantizes_data(const OpDesc& desc) {
  return desc.type == kFusedConvolution &&
         !without_prefix(desc.attributes, kQuantizePrefix).all().empty();
}

bool stores_maxima(const OpDesc& desc) {
  return desc.type == kFusedConvolution &&
         !without_prefix(desc.attributes, kPoolPrefix).all().empty();
}

bool keeps_order(const OpDesc& desc) {
  const size_t rank = desc.outputs[0].shape.size();
  return std::all_of(desc.tail.begin(), desc.tail.end(), [&](const PostOp& op) {
    if (op.is_unary())
      return op.function == "relu" || op.function == "clamp" || op.function == "to_byte" ||
             op.function == "store_f8e4m3";
    const Tensor& constant = desc.constants[static_cast<size_t>(op.operand)];
    if (constant.empty() || !is_float(constant.type()) || op.padded) return false;
    // All pixels of a channel have the same constant.
    const Shape& shape = constant.shape();
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1 && d + rank - shape.size() != 1) return false;
    if (op.function == "add") return true;
    const std::vector<float> factors = constant.to_floats();
    return op.function == "multiply" &&
           std::all_of(factors.begin(), factors.end(), [](float f) { return f >= 0; });
  });
}

std::vector<OpDef> fused_convolution_ops() {
  OpDef fused;
  fused.type = kFusedConvolution;
  fused.opsets = {1};
  fused.infer_shapes = infer_shapes;
  fused.evaluate = evaluate;
  fused.families = {&windows_family()};
  fused.layout = LayoutRule::image;
  return {std::move(fused)};
}

}  // namespace clinfer
