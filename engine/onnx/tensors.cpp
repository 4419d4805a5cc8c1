// Reads TensorProto with raw bytes, typed lists or external data, by data type.
#include "engine/onnx/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

// Values of data types that the schema of ONNX 1.12 does not name yet.
constexpr int kFloat8E4M3FN = 17, kFloat8E5M2Number = 19, kUint4 = 21, kInt4 = 22;
// Limit of elements of all sparse tensors after expansion.
constexpr int64_t kMostSparse = int64_t{1} << 26;
constexpr size_t kMostMade = size_t{1} << 28;  // limit of bytes of all constants that nodes ask for

[[noreturn]] void bad(const std::string& what, SourcePlace place = SourcePlace::here()) {
  throw Error(ErrorCode::bad_model, what, place);
}

// Returns the type of raw data.
StoredType stored_type(int data_type) {
  using T = onnx::TensorProto;
  using E = ElementType;
  switch (data_type) {
    case T::FLOAT:
      return {32, E::f32, E::f32};
    case T::FLOAT16:
      return {16, E::f16, E::f32};
    case T::DOUBLE:
      return {64, E::f64, E::f32};
    case T::BFLOAT16:  // the upper half of an f32
      return {16, E::u16, E::f32};
    case T::INT8:
      return {8, E::i8, E::i8};
    case T::UINT8:
      return {8, E::u8, E::u8};
    case T::INT16:
      return {16, E::i16, E::i16};
    case T::UINT16:
      return {16, E::u16, E::u16};
    case T::INT32:
      return {32, E::i32, E::i32};
    case T::UINT32:
      return {32, E::u32, E::u32};
    case T::INT64:
      return {64, E::i64, E::i64};
    case T::UINT64:
      return {64, E::u64, E::u64};
    case T::BOOL:
      return {8, E::boolean, E::boolean};
    case kFloat8E4M3FN:
      return {8, E::u8, E::f32, &kFloat8E4M3};
    case kFloat8E5M2Number:
      return {8, E::u8, E::f32, &kFloat8E5M2};
    case kUint4:
      return {4, E::u8, E::u8};
    case kInt4:
      return {4, E::i8, E::i8};
    case T::STRING:
      throw Error(ErrorCode::unsupported, "tensors of strings are not supported");
    case T::COMPLEX64:
    case T::COMPLEX128:
      throw Error(ErrorCode::unsupported, "tensors of complex numbers are not supported");
    default:
      throw Error(ErrorCode::unsupported,
                  "the element type " + std::to_string(data_type) + " is not supported");
  }
}

Shape shape_of(const onnx::TensorProto& tensor) {
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  for (int64_t dim : shape)
    if (dim < 0) bad("a tensor has the impossible shape " + to_string(shape));
  checked_count(shape);
  return shape;
}

Tensor from_bfloat16(const Tensor& halves) {
  Tensor wide = Tensor::allocate(ElementType::f32, halves.shape());
  const auto* from = halves.data<uint16_t>();
  auto* to = wide.mutable_data<uint32_t>();
  for (int64_t i = 0; i < halves.elements(); ++i) to[i] = uint32_t{from[i]} << 16;
  return wide;
}

Tensor in_graph(const Tensor& tensor, int data_type, const StoredType& type) {
  if (data_type == onnx::TensorProto::BFLOAT16) return from_bfloat16(tensor);
  if (type.float8) return from_float8(tensor, *type.float8);
  if (type.type != ElementType::boolean)
    return type.type == type.in_graph ? tensor : tensor.convert(type.in_graph);
  Tensor truth = Tensor::allocate(ElementType::boolean, tensor.shape());
  const auto* from = tensor.data<uint8_t>();
  std::transform(from, from + tensor.elements(), truth.mutable_data<uint8_t>(),
                 [](uint8_t byte) { return byte != 0; });
  return truth;
}

// Unpacks numbers of fewer than 8 bits, of which a byte holds two, the first one in the low half.
Tensor unpacked(const StoredType& type, const Shape& shape, const std::string& bytes) {
  Tensor tensor = Tensor::allocate(type.type, shape);
  auto* to = tensor.mutable_data<uint8_t>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const unsigned nibble =
        static_cast<unsigned char>(bytes[static_cast<size_t>(i / 2)]) >> (i % 2 * 4) & 15;
    to[i] =
        static_cast<uint8_t>(type.type == ElementType::i8 && nibble >= 8 ? nibble | 0xf0 : nibble);
  }
  return tensor;
}

// Reads a list whose numbers are wider than the elements, as protobuf keeps them.
template <typename List>
Tensor from_list(const List& list, const StoredType& type, const Shape& shape) {
  Tensor tensor = Tensor::allocate(type.type, shape);
  if (type.bits < 8) {
    std::string bytes;
    for (const auto value : list) bytes += static_cast<char>(value);
    return unpacked(type, shape, bytes);
  }
  with_size(type.type, [&](auto zero) {
    using Element = decltype(zero);
    auto* to = tensor.mutable_data<Element>();
    for (const auto value : list) {
      // A float or double is copied bit by bit; an integer is truncated to the element.
      if constexpr (sizeof(Element) == sizeof(value))
        *to++ = std::bit_cast<Element>(value);
      else
        *to++ = static_cast<Element>(static_cast<int64_t>(value));
    }
  });
  return tensor;
}

}  // namespace

ElementType onnx_type(int data_type) { return stored_type(data_type).in_graph; }

const Float8Format* float8_of(int data_type) { return stored_type(data_type).float8; }

std::string narrow_name_of(int data_type) {
  const StoredType type = stored_type(data_type);
  return type.float8                    ? std::string(type.float8->name)
         : type.bits >= 8               ? ""
         : type.type == ElementType::u8 ? "u4"
                                        : "i4";
}

Tensor OnnxTensors::read(const onnx::TensorProto& tensor) {
  const auto found = read_.find(&tensor);
  return found != read_.end() ? found->second : read_[&tensor] = convert(tensor);
}

Tensor OnnxTensors::convert(const onnx::TensorProto& tensor) {
  const StoredType type = stored_type(tensor.data_type());
  const Shape shape = shape_of(tensor);
  if (tensor.has_segment())
    throw Error(ErrorCode::unsupported, "tensors in segments are not supported");
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return external(tensor, shape);
  const int64_t elements = count(shape),
                stored = type.bits < 8 ? ceil_div(elements, int64_t{8 / type.bits}) : elements;
  const auto expect = [&](int64_t have, int64_t need) {
    if (have != need)
      bad("a tensor of shape " + to_string(shape) + " needs " + std::to_string(need) +
          " values or bytes, the file has " + std::to_string(have));
  };
  if (tensor.has_raw_data()) {
    const std::string& bytes = tensor.raw_data();
    expect(static_cast<int64_t>(bytes.size()), stored * std::max(type.bits / 8, 1u));
    if (elements == 0) return Tensor::allocate(type.in_graph, shape);
    if (type.bits < 8) return unpacked(type, shape, bytes);
    if (reinterpret_cast<uintptr_t>(bytes.data()) % size_of(type.type) == 0)
      return in_graph(Tensor::view(type.type, shape, bytes.data(), model_), tensor.data_type(),
                      type);
    Tensor copy = Tensor::allocate(type.type, shape);
    std::memcpy(copy.raw_mutable(), bytes.data(), bytes.size());
    return in_graph(copy, tensor.data_type(), type);
  }
  const auto from = [&](const auto& list) {
    expect(list.size(), stored);
    if (elements == 0) return Tensor::allocate(type.in_graph, shape);
    return in_graph(from_list(list, type, shape), tensor.data_type(), type);
  };
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return from(tensor.float_data());
    case onnx::TensorProto::DOUBLE:
      return from(tensor.double_data());
    case onnx::TensorProto::INT64:
      return from(tensor.int64_data());
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      return from(tensor.uint64_data());
    default:
      return from(tensor.int32_data());
  }
}

Tensor OnnxTensors::external(const onnx::TensorProto& tensor, const Shape& shape) {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    const auto number = [&] {
      const auto value = parse_int(entry.value());
      if (!value || *value < 0)
        bad("external data have the " + printable(entry.key()) + " \"" + printable(entry.value()) +
            "\"");
      return *value;
    };
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number();
    if (entry.key() == "length") length = number();
  }
  const std::string named = "external data \"" + printable(location) + "\"";
  if (path_.empty()) throw Error(ErrorCode::not_found, named + ": the model is not a file");
  std::string file;
  try {
    file = file_beside(path_, location);
  } catch (const Error& error) {
    throw Error(error.code(), named + ": " + error.what(), error.place());
  }
  auto found = files_.find(file);
  if (found == files_.end()) found = files_.emplace(file, Weights(open_file(file))).first;
  const StoredType type = stored_type(tensor.data_type());
  const int64_t bytes = ceil_div(checked_product(count(shape), type.bits), 8);
  StoredType as_stored = type;
  as_stored.in_graph = type.type;
  as_stored.float8 = nullptr;
  return in_graph(found->second.read(as_stored, shape, offset, length.value_or(bytes)),
                  tensor.data_type(), type);
}

void OnnxTensors::count_made(size_t bytes) {
  if (bytes > kMostMade - made_)
    throw Error(ErrorCode::unsupported,
                "the tables that the model's operations need would be larger than " +
                    std::to_string(kMostMade >> 20) + " MiB");
  made_ += bytes;
}

Tensor OnnxTensors::read(const onnx::SparseTensorProto& tensor) {
  const Tensor values = read(tensor.values());
  if (tensor.indices().data_type() != onnx::TensorProto::INT64)
    bad("the indices of a sparse tensor are not of 64 bits");
  const Tensor indices = read(tensor.indices());
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  for (int64_t dim : shape)
    if (dim < 0) bad("a sparse tensor has the impossible shape " + to_string(shape));
  if (checked_count(shape) > kMostSparse - sparse_)
    throw Error(ErrorCode::unsupported,
                "a sparse tensor of shape " + to_string(shape) +
                    " would be written out; the model's sparse tensors would have more than " +
                    std::to_string(kMostSparse) + " elements");
  sparse_ += count(shape);
  const int64_t stored = values.elements(), rank = static_cast<int64_t>(shape.size());
  const bool linear = indices.shape() == Shape{stored};
  if (values.shape().size() != 1 || (!linear && indices.shape() != Shape{stored, rank}))
    bad("a sparse tensor has values of shape " + to_string(values.shape()) + " and indices of " +
        to_string(indices.shape()));
  Tensor dense = Tensor::allocate(values.type(), shape);
  const Shape strides = row_major_strides(shape);
  const auto* at = indices.data<int64_t>();
  const size_t size = size_of(values.type());
  for (int64_t i = 0; i < stored; ++i) {
    int64_t place = linear ? at[i] : 0;
    for (int64_t d = 0; !linear && d < rank; ++d) {
      const int64_t index = at[i * rank + d];
      if (index < 0 || index >= shape[static_cast<size_t>(d)])
        bad("a sparse tensor has an index out of range");
      place += index * strides[static_cast<size_t>(d)];
    }
    if (place < 0 || place >= dense.elements()) bad("a sparse tensor has an index out of range");
    std::memcpy(static_cast<std::byte*>(dense.raw_mutable()) + static_cast<size_t>(place) * size,
                static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * size, size);
  }
  return dense;
}

}  // namespace clinfer
