// Names types in OpenCL C, converts constants, and checks tensors.
#include "kernels/storage.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/float8.h"
#include "kernels/shape_util.h"
#include "kernels/tail.h"

namespace clinfer {

std::string storage_name(ElementType type) {
  return type == ElementType::u8       ? "uchar"
         : type == ElementType::f8e4m3 ? "e4m3"
         : type == ElementType::f16    ? "half"
                                       : "float";
}

std::string moved_type(ElementType type) {
  switch (size_of(type)) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

std::string value_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "float";
    case ElementType::f16:
      return "half";
    case ElementType::i32:
      return "int";
    case ElementType::i8:
      return "char";
    case ElementType::u8:
    case ElementType::boolean:
      return "uchar";
    default:
      return "";
  }
}

std::vector<std::byte> to_bytes(const std::vector<float>& values, ElementType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  if (type == ElementType::f8e4m3) {
    std::transform(values.begin(), values.end(), bytes.begin(), [](float value) {
      return static_cast<std::byte>(float8_bits(value, kFloat8E4M3));
    });
  } else if (type == ElementType::f16) {
    auto* halves = reinterpret_cast<uint16_t*>(bytes.data());
    for (size_t i = 0; i < values.size(); ++i) halves[i] = float_to_half(values[i]);
  } else if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

static std::string reject_size(const OpDesc& desc, size_t data_inputs) {
  if (desc.outputs[0].elements() == 0) return "the output is empty";
  for (size_t i = 0; i < data_inputs; ++i)
    if (desc.inputs[i].span() > kMaxIndex) return "an input has more than 2^31 elements";
  if (desc.outputs[0].span() > kMaxIndex) return "the output has more than 2^31 elements";
  return "";
}

std::string reject_storage(const OpDesc& desc, size_t data_inputs) {
  const ElementType type = desc.inputs[0].type;
  if (type != ElementType::f32 && type != ElementType::f16)
    return "the data is neither f32 nor f16";
  if (desc.outputs[0].type != type) return "input and output differ in type";
  return reject_size(desc, data_inputs);
}

std::string reject_float_data(const OpDesc& desc) {
  OpDesc floats = desc;
  if (quantizes(desc.tail)) floats.outputs[0].type = desc.inputs[0].type;
  return reject_storage(floats, 1);
}

std::string reject_bytes(const OpDesc& desc) {
  if (!is_quantized(desc.inputs[0].type) || desc.outputs[0].type != desc.inputs[0].type)
    return "the data are not bytes";
  return reject_size(desc, 1);
}

std::string reject_byte_storage(const OpDesc& desc) {
  if (desc.constants[1].empty()) return "the weights are not constant";
  if (desc.inputs[0].type == ElementType::f8e4m3) {
    if (desc.constants[1].type() != ElementType::f8e4m3) return "the weights are not f8e4m3";
  } else if (desc.constants[1].type() != ElementType::i8 &&
             desc.constants[1].type() != ElementType::i16) {
    return "the weights are not small integers";
  }
  if (!is_float(desc.outputs[0].type) && !quantizes(desc.tail))
    return "the output is neither of a float type nor quantised";
  return reject_size(desc, 1);
}

}  // namespace clinfer
