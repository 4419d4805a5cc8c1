// Reads and writes the .npy format: magic, version, length of a header that is a Python dict, then
// the elements.
#include "engine/tools/output/npy.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/ir/model_file.h"
#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostDimensions = 32;

struct Type {
  std::string_view code;
  ElementType type;
};
constexpr Type kTypes[] = {
    {"f4", ElementType::f32}, {"f2", ElementType::f16}, {"f8", ElementType::f64},
    {"i1", ElementType::i8},  {"u1", ElementType::u8},  {"i2", ElementType::i16},
    {"u2", ElementType::u16}, {"i4", ElementType::i32}, {"u4", ElementType::u32},
    {"i8", ElementType::i64}, {"u8", ElementType::u64}, {"b1", ElementType::boolean},
};

[[noreturn]] void fail_npy(const std::string& what) { throw Error(ErrorCode::bad_argument, what); }

struct Header {
  ElementType type = ElementType::f32;
  bool fortran = false;
  Shape shape;
};

// Returns the value of a key in the header's dict: the text from "'key':" to the comma that ends
// it.
std::string_view value_of(std::string_view dict, std::string_view key) {
  size_t at = std::string_view::npos;
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    at = dict.find(quoted);
    if (at != std::string_view::npos) {
      at = dict.find(':', at + quoted.size());
      break;
    }
  }
  if (at == std::string_view::npos) fail_npy("the header has no '" + std::string(key) + "'");
  std::string_view value = dict.substr(at + 1);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  const bool tuple = value.starts_with('(');
  const size_t end = tuple ? value.find(')') : value.find_first_of(",}");
  if (end == std::string_view::npos) fail_npy("the header's '" + std::string(key) + "' has no end");
  value = value.substr(0, end + (tuple ? 1 : 0));
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  return value;
}

ElementType parse_type(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  const std::string_view code = text.substr(std::min<size_t>(text.size(), 1));
  if (text.starts_with('>') && code.size() == 2 && code[1] != '1')
    fail_npy("big-endian elements (" + std::string(text) +
             ") are not supported; save with .astype('<" + std::string(code) + "')");
  for (const Type& type : kTypes)
    if (code == type.code) return type.type;
  fail_npy("elements of type " + std::string(text.substr(0, 40)) + " are not supported");
}

Shape parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    fail_npy("the header's shape is no tuple");
  text = text.substr(1, text.size() - 2);
  Shape shape;
  while (text.find_first_not_of(' ') != std::string_view::npos) {
    text.remove_prefix(text.find_first_not_of(' '));
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0) fail_npy("the header's shape is no tuple of sizes");
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.starts_with(','))
      text.remove_prefix(1);
    else if (!text.empty())
      fail_npy("the header's shape is no tuple of sizes");
  }
  if (shape.size() > kMostDimensions)
    fail_npy("it has " + std::to_string(shape.size()) + " dimensions");
  return shape;
}

Header parse_header(std::string_view dict) {
  Header header;
  header.type = parse_type(value_of(dict, "descr"));
  const std::string_view order = value_of(dict, "fortran_order");
  if (order != "True" && order != "False")
    fail_npy("the header's fortran_order is neither True nor False");
  header.fortran = order == "True";
  header.shape = parse_shape(value_of(dict, "shape"));
  return header;
}

// Converts elements from Fortran order (first dimension innermost) to row-major order.
Tensor from_fortran(const Tensor& from) {
  TensorDesc desc = TensorDesc::row_major(from.type(), from.shape());
  int64_t stride = 1;
  for (size_t d = 0; d < desc.shape.size(); ++d) {
    desc.strides[d] = stride;
    stride *= desc.shape[d];
  }
  return gather_from(desc, from.raw(), from.type());
}

Tensor parse(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(text[i]));
  };
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 4) fail_npy("not a .npy file");
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    fail_npy("version " + std::to_string(version) + " of the format is not supported");
  const size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) fail_npy("cut short within its header");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - begin) fail_npy("cut short within its header");
  const Header header = parse_header(text.substr(begin, length));

  int64_t bytes = static_cast<int64_t>(size_of(header.type));
  for (int64_t dim : header.shape)
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      fail_npy("its shape " + to_string(header.shape) + " is too large");
  const size_t available = text.size() - begin - length;
  if (static_cast<uint64_t>(bytes) > available)
    fail_npy("cut short: " + to_string(header.shape) + " of " + std::string(name_of(header.type)) +
             " takes " + std::to_string(bytes) + " bytes, it has " + std::to_string(available));
  // Copies first, because elements in the file are not aligned.
  Tensor tensor = Tensor::allocate(header.type, header.shape);
  std::memcpy(tensor.raw_mutable(), file.data() + begin + length, static_cast<size_t>(bytes));
  return header.fortran && header.shape.size() > 1 ? from_fortran(tensor) : tensor;
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> file, const std::string& where) {
  try {
    return parse(file);
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

Tensor read_npy(const std::string& path) {
  const std::string file = read_text_file(path);
  return parse_npy(std::as_bytes(std::span(file)), path);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string_view code;
  for (const Type& type : kTypes)
    if (type.type == tensor.type()) code = type.code;
  const std::string order = size_of(tensor.type()) == 1 ? "|" : "<";
  std::string shape;
  for (int64_t dim : tensor.shape()) shape += std::to_string(dim) + ",";
  std::string dict = "{'descr': '" + order + std::string(code) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kFixed = 10;  // bytes of magic, version and length
  dict.resize((kFixed + dict.size() + 64) / 64 * 64 - kFixed, ' ');
  dict.back() = '\n';
  std::string head(kMagic);
  head += {'\1', '\0', static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  head += dict;

  const std::string_view elements(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  write_named_file(path, std::array{std::string_view(head), elements});
}

}  // namespace clinfer
