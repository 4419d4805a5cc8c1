// Convolutions of floats, halves and bytes, and operands of their tails: what the tests of families that
// take all of these run.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "tests/kernels/op_test.h"

namespace clinfer::test {

constexpr Tolerance kHalf{3e-3, 3e-3};
constexpr Tolerance kExact{0, 1e-6};
constexpr Tolerance kOneByte{0.004, 0};  // of 255

struct ConvolutionCase {
  const char* type;
  Shape data, filter;
  const char *strides, *pads, *dilations;
  const char* zero_point = "0";  // of bytes
};

// `data` is f32, f16 with weights that are halves, too, f8e4m3 with weights of the same, or u8 with
// weights of i8, or of i16 if these are `shifted`.
inline OpDesc describe(const ConvolutionCase& c, ElementType data, std::vector<Tensor>& inputs,
                       bool shifted = false) {
  const bool bytes = data == ElementType::u8, halves = data == ElementType::f16;
  Attributes given = attributes({{"strides", c.strides},
                                 {"pads_begin", c.pads},
                                 {"pads_end", c.pads},
                                 {"dilations", c.dilations}});
  if (bytes) {
    inputs = {
        random_ints(ElementType::u8, c.data, 0, 255, 1),
        shifted ? shifted_weights(c.filter) : random_ints(ElementType::i8, c.filter, -128, 127, 2)};
    given.set("zero_point", c.zero_point);
  } else {
    inputs = {random_tensor(c.data, -1, 1, 1), random_tensor(c.filter, -1, 1, 2)};
  }
  if (data == ElementType::f8e4m3)
    for (Tensor& input : inputs) input = input.convert(data);
  if (halves) inputs[1] = inputs[1].convert(ElementType::f16).convert(ElementType::f32);
  OpDesc desc = make_desc(c.type, 1, given, inputs, {false, true});
  if (halves) desc.inputs[0].type = desc.outputs[0].type = ElementType::f16;
  return desc;
}

// The device, or a GPU that emulates the matrix instructions of warps.
inline DeviceTraits matrix_traits() {
  if (device_traits().matrix == MatrixUnit::ptx) return device_traits();
  DeviceTraits traits = gpu_traits();
  traits.matrix = MatrixUnit::emulated;
  return traits;
}

inline void add_constant(OpDesc& desc, std::vector<Tensor>& inputs, const char* function,
                         const Tensor& value) {
  inputs.push_back(value);
  desc.inputs.push_back(TensorDesc::row_major(ElementType::f32, value.shape()));
  desc.constants.push_back(value);
  desc.tail.push_back({function, 0, 0, static_cast<int>(inputs.size()) - 1});
}

// In a layout with gaps.
inline void add_activation(OpDesc& desc, std::vector<Tensor>& inputs, const char* function,
                           const Tensor& value) {
  inputs.push_back(value);
  desc.inputs.push_back(with_gaps(TensorDesc::channels_last(value.type(), value.shape())));
  desc.constants.push_back({});
  desc.tail.push_back({function, 0, 0, static_cast<int>(inputs.size()) - 1});
}

// A sum with a constant per channel, relu, and a product with an activation.
inline void add_functions(OpDesc& desc, std::vector<Tensor>& inputs) {
  const Shape& shape = desc.outputs[0].shape;
  add_constant(desc, inputs, "add", random_tensor({1, shape[1], 1, 1}, -1, 1, 3));
  desc.tail.push_back({"relu"});
  add_activation(desc, inputs, "multiply", random_tensor(shape, -1, 1, 4));
}

// Adds an activation of bytes, in a layout with gaps, whose values are 0.25 * byte - 30.
inline void add_bytes(OpDesc& desc, std::vector<Tensor>& inputs) {
  inputs.push_back(random_ints(ElementType::u8, desc.outputs[0].shape, 0, 255, 5));
  desc.inputs.push_back(
      with_gaps(TensorDesc::channels_last(ElementType::u8, desc.outputs[0].shape), 3, 1));
  desc.constants.push_back({});
  desc.tail.push_back({"add", 0.25f, -30, static_cast<int>(inputs.size()) - 1});
}

// Rounds to f8e4m3, adds an activation of the same, whose numbers are to be multiplied by 0.25, and
// makes the result one.
inline void add_float8_and_store(OpDesc& desc, std::vector<Tensor>& inputs) {
  add_activation(desc, inputs, "add",
                 random_tensor(desc.outputs[0].shape, -9, 9, 5).convert(ElementType::f8e4m3));
  desc.tail.back().alpha = 0.25f;
  desc.tail.insert(desc.tail.end() - 1, {"to_f8e4m3", 448, 448});
  desc.tail.push_back({"store_f8e4m3", -448, 448});
  desc.outputs[0].type = ElementType::f8e4m3;
}

// A factor and a shift per channel, then a conversion to bytes with `levels` steps.
inline void quantize_output(OpDesc& desc, std::vector<Tensor>& inputs, float scale, int levels) {
  Shape channels(desc.outputs[0].shape.size(), 1);
  const size_t axis = desc.type == "MatMul" ? channels.size() - 1 : 1;
  channels[axis] = desc.outputs[0].shape[axis];
  add_constant(desc, inputs, "multiply", random_tensor(channels, scale / 2, scale, 3));
  add_constant(desc, inputs, "add", random_tensor(channels, 90, 160, 4));
  desc.tail.push_back({"to_byte", 0, static_cast<float>(levels - 1)});
  desc.outputs[0].type = ElementType::u8;
}

// Parameters of a tuning point.
using Values = std::vector<std::pair<const char*, int>>;

// Whether one of a family's points has these values.
inline bool offers(const std::string& name, const OpDesc& desc, const DeviceTraits& traits,
                   const Values& values) {
  const auto& families = find_op(desc.type, desc.opset)->families;
  const auto family = std::find_if(families.begin(), families.end(),
                                   [&](const KernelFamily* f) { return f->name == name; });
  if (family == families.end()) throw std::out_of_range("no family " + name);
  const std::vector<TuningPoint> space = (*family)->space(desc, traits);
  return std::any_of(space.begin(), space.end(), [&](const TuningPoint& point) {
    return std::all_of(values.begin(), values.end(),
                       [&](const auto& value) { return point[value.first] == value.second; });
  });
}

}  // namespace clinfer::test
