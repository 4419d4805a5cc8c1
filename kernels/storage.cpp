// Names types in OpenCL C, converts constants, and checks tensors.
#include "kernels/storage.h"

#include <cstring>

#include "kernels/shape_util.h"
#include "kernels/tail.h"

namespace clinfer {

std::string storage_name(ElementType type) {
  return type == ElementType::u8 ? "uchar" : type == ElementType::f16 ? "half" : "float";
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
  if (type == ElementType::f16) {
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
  if (desc.inputs[0].type != ElementType::u8 || desc.outputs[0].type != ElementType::u8)
    return "the data are not bytes";
  return reject_size(desc, 1);
}

std::string reject_byte_storage(const OpDesc& desc) {
  if (desc.constants[1].empty() ||
      (desc.constants[1].type() != ElementType::i8 && desc.constants[1].type() != ElementType::i16))
    return "the weights are not constant small integers";
  if (!is_float(desc.outputs[0].type) && !quantizes(desc.tail))
    return "the output is neither of a float type nor quantised";
  return reject_size(desc, 1);
}

}  // namespace clinfer
