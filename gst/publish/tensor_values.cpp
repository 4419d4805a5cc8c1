// Writes the values of tensors as JSON.
#include "gst/publish/tensor_values.h"

#include <cstdint>
#include <cstring>

#include "gst/meta/parameters.h"

namespace clinfer {
namespace {

template <typename Value>
Value read_at(const uint8_t* data, size_t index) {
  Value value;
  std::memcpy(&value, data + index * sizeof(Value), sizeof(Value));
  return value;
}

}  // namespace

void write_values(JsonWriter& json, const std::string& type, const Bytes& data) {
  const TypeName* known = type_named(type);
  gsize size = 0;
  const auto* bytes =
      data == nullptr ? nullptr : static_cast<const uint8_t*>(g_bytes_get_data(data.get(), &size));
  json.begin_array();
  for (size_t i = 0; known != nullptr && bytes != nullptr && i < size / known->bytes; ++i) {
    if (type == "f32") json.value(read_at<float>(bytes, i));
    if (type == "f16") json.value(half_to_float(read_at<uint16_t>(bytes, i)));
    if (type == "f64") json.value(read_at<double>(bytes, i));
    if (type == "i8") json.value(static_cast<int64_t>(read_at<int8_t>(bytes, i)));
    if (type == "u8" || type == "boolean") json.value(static_cast<int64_t>(bytes[i]));
    if (type == "i16") json.value(static_cast<int64_t>(read_at<int16_t>(bytes, i)));
    if (type == "u16") json.value(static_cast<int64_t>(read_at<uint16_t>(bytes, i)));
    if (type == "i32") json.value(static_cast<int64_t>(read_at<int32_t>(bytes, i)));
    if (type == "u32") json.value(static_cast<int64_t>(read_at<uint32_t>(bytes, i)));
    if (type == "i64") json.value(read_at<int64_t>(bytes, i));
    if (type == "u64") json.value(read_at<uint64_t>(bytes, i));
  }
  json.end_array();
}

}  // namespace clinfer
