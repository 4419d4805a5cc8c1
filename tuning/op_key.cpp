// Makes keys of tuning problems.
#include "tuning/op_key.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/hash.h"

namespace clinfer {

namespace {

// Longer attributes (class lists, tables) are replaced by their hash.
constexpr size_t kLongestAttribute = 60;
constexpr int64_t kAlignment = 16;  // in elements; offsets matter modulo this

std::string join(const Shape& numbers, char separator) {
  std::string text;
  for (const int64_t n : numbers)
    text += (text.empty() ? "" : std::string(1, separator)) + std::to_string(n);
  return text.empty() ? "scalar" : text;
}

// Returns "1x56x56x64:f16"; "/rows" is added for a row-major image, "/strides 1,64,..." if there
// are gaps.
std::string tensor_text(const TensorDesc& desc) {
  std::string text;
  const bool image = desc.shape.size() == 4 || desc.shape.size() == 5;
  const std::string type(name_of(desc.type));
  if (image && desc.is_channels_last()) {
    Shape shape = desc.shape;
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    text = join(shape, 'x') + ":" + type;
  } else {
    text = join(desc.shape, 'x') + ":" + type;
    if (!desc.is_row_major())
      text += "/strides " + join(desc.strides, ',');
    else if (image)
      text += "/rows";
  }
  if (const int64_t shift = ((desc.offset % kAlignment) + kAlignment) % kAlignment; shift != 0)
    text += "+" + std::to_string(shift);
  return text;
}

// Shortens "1,1" to "1", the usual case of equal numbers.
std::string attribute_text(const std::string& value) {
  std::string compact;
  for (const char c : value)
    if (c != ' ') compact += c;
  const size_t comma = compact.find(',');
  if (comma != std::string::npos) {
    const std::string first = compact.substr(0, comma + 1), whole = compact + ",";
    bool equal = whole.size() % first.size() == 0;
    for (size_t at = 0; equal && at < whole.size(); at += first.size())
      equal = whole.compare(at, first.size(), first) == 0;
    if (equal) compact = compact.substr(0, comma);
  }
  for (char& c : compact)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return compact.size() > kLongestAttribute ? hex(fnv1a(value)) : compact;
}

}  // namespace

std::string op_key(const OpDesc& desc) {
  std::string key = desc.type;
  if (desc.opset > 1) key += "-" + std::to_string(desc.opset);
  const size_t own =
      std::min(desc.own_inputs ? desc.own_inputs : desc.inputs.size(), desc.inputs.size());
  for (size_t i = 0; i < own; ++i) {
    const bool constant = i < desc.constants.size() && !desc.constants[i].empty();
    // Uses a constant's logical shape, because each kernel chooses its layout itself.
    key +=
        constant ? " w=" + join(desc.inputs[i].shape, 'x') : " in=" + tensor_text(desc.inputs[i]);
  }
  for (const TensorDesc& output : desc.outputs) key += " out=" + tensor_text(output);
  for (const auto& [name, value] : desc.attributes.all())
    key += " " + name + "=" + attribute_text(value);
  for (size_t i = 0; i < desc.tail.size(); ++i) {
    const PostOp& op = desc.tail[i];
    key += (i == 0 ? " tail=" : ",") + op.function;
    if (op.is_unary()) continue;
    const TensorDesc& operand = desc.inputs[static_cast<size_t>(op.operand)];
    const bool constant = !desc.constants[static_cast<size_t>(op.operand)].empty();
    key += "(" + (constant ? "w " + join(operand.shape, 'x') : tensor_text(operand)) + ")";
  }
  return key;
}

std::string record_hash(const std::string& op, const std::string& device) {
  return hex(fnv1a(op + "|" + device));
}

}  // namespace clinfer
