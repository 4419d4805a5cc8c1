// Functions of one element with broadcasting: activations, arithmetic, comparisons, Convert,
// Select, FakeQuantize, and the engine's own Quantize, Dequantize and ToFloat8 (rounds to a format
// of float8.h). A table maps each operation to a function of scalar_functions.h, from which shapes,
// reference and kernels follow.
#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/float8.h"
#include "kernels/expand.h"
#include "kernels/kernel.h"
#include "kernels/scalar_functions.h"
#include "kernels/shape_util.h"

namespace clinfer {

namespace {

enum class Kind {
  unary,
  binary,
  comparison,
  logical,
  logical_not,
  convert,
  convert_like,
  select,
  fake_quantize,
  // x, scale, shift -> byte: round(x * scale + shift) - lowest in 0..levels-1; or the nearest
  // f8e4m3, if this is the attribute "type"
  quantize,
  dequantize,  // byte or f8e4m3, scale, shift -> x * scale + shift
};

struct Entry {
  const char* type;
  int first_opset;
  Kind kind;
  const char* function;  // set if it does not depend on attributes
};

bool quantizes_to_float8(const Attributes& attributes) {
  return attributes.get_string("type", "") == kFloat8E4M3.name;
}

constexpr Entry kTable[] = {
    {"Abs", 1, Kind::unary, "abs"},
    {"Acos", 1, Kind::unary, "acos"},
    {"Acosh", 3, Kind::unary, "acosh"},
    {"Asin", 1, Kind::unary, "asin"},
    {"Asinh", 3, Kind::unary, "asinh"},
    {"Atan", 1, Kind::unary, "atan"},
    {"Atanh", 3, Kind::unary, "atanh"},
    {"Ceiling", 1, Kind::unary, "ceiling"},
    {"Clamp", 1, Kind::unary, "clamp"},
    {"Cos", 1, Kind::unary, "cos"},
    {"Cosh", 1, Kind::unary, "cosh"},
    {"Elu", 1, Kind::unary, "elu"},
    {"Erf", 1, Kind::unary, "erf"},
    {"Exp", 1, Kind::unary, "exp"},
    {"Floor", 1, Kind::unary, "floor"},
    {"Gelu", 2, Kind::unary, nullptr},
    {"HSigmoid", 5, Kind::unary, "hsigmoid"},
    {"HSwish", 4, Kind::unary, "hswish"},
    {"HardSigmoid", 1, Kind::unary, "hard_sigmoid"},
    {"Log", 1, Kind::unary, "log"},
    {"Mish", 4, Kind::unary, "mish"},
    {"Negative", 1, Kind::unary, "negative"},
    {"ReLU", 1, Kind::unary, "relu"},
    {"Round", 5, Kind::unary, nullptr},
    {"Selu", 1, Kind::unary, "selu"},
    {"Sigmoid", 1, Kind::unary, "sigmoid"},
    {"Sign", 1, Kind::unary, "sign"},
    {"Sin", 1, Kind::unary, "sin"},
    {"Sinh", 1, Kind::unary, "sinh"},
    {"SoftPlus", 4, Kind::unary, "soft_plus"},
    {"SoftSign", 9, Kind::unary, "soft_sign"},
    {"Sqrt", 1, Kind::unary, "sqrt"},
    {"Swish", 4, Kind::unary, "swish"},
    {"Tan", 1, Kind::unary, "tan"},
    {"Tanh", 1, Kind::unary, "tanh"},
    {"ToFloat8", 1, Kind::unary, nullptr},
    {"Add", 1, Kind::binary, "add"},
    {"Subtract", 1, Kind::binary, "subtract"},
    {"Multiply", 1, Kind::binary, "multiply"},
    {"Divide", 1, Kind::binary, "divide"},
    {"FloorMod", 1, Kind::binary, "floor_mod"},
    {"Maximum", 1, Kind::binary, "maximum"},
    {"Minimum", 1, Kind::binary, "minimum"},
    {"Mod", 1, Kind::binary, "mod"},
    {"Power", 1, Kind::binary, "power"},
    {"PReLU", 1, Kind::binary, "prelu"},
    {"SquaredDifference", 1, Kind::binary, "squared_difference"},
    {"Equal", 1, Kind::comparison, "equal"},
    {"NotEqual", 1, Kind::comparison, "not_equal"},
    {"Less", 1, Kind::comparison, "less"},
    {"LessEqual", 1, Kind::comparison, "less_equal"},
    {"Greater", 1, Kind::comparison, "greater"},
    {"GreaterEqual", 1, Kind::comparison, "greater_equal"},
    {"LogicalAnd", 1, Kind::logical, "logical_and"},
    {"LogicalOr", 1, Kind::logical, "logical_or"},
    {"LogicalXor", 1, Kind::logical, "logical_xor"},
    {"LogicalNot", 1, Kind::logical_not, "logical_not"},
    {"BitwiseAnd", 13, Kind::binary, "bitwise_and"},
    {"BitwiseOr", 13, Kind::binary, "bitwise_or"},
    {"BitwiseXor", 13, Kind::binary, "bitwise_xor"},
    {"BitwiseNot", 13, Kind::unary, "bitwise_not"},
    {"BitwiseLeftShift", 15, Kind::binary, "bitwise_left"},
    {"BitwiseRightShift", 15, Kind::binary, "bitwise_right"},
    {"Convert", 1, Kind::convert, "identity"},
    {"ConvertLike", 1, Kind::convert_like, "identity"},
    {"Select", 1, Kind::select, "select"},
    {"FakeQuantize", 1, Kind::fake_quantize, "fake_quantize"},
    {"Quantize", 1, Kind::quantize, "quantize"},
    {"Dequantize", 1, Kind::dequantize, "scale_and_shift"},
};

const Entry& entry_of(const std::string& type) {
  for (const Entry& entry : kTable)
    if (type == entry.type) return entry;
  throw Error(ErrorCode::unsupported, type + " is not an element function");
}

// ---- integers ----------------------------------------------------------------------------------

int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// Divides and rounds down; returns 0 if there is no result (division by 0).
int64_t floor_divide(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return wrapped(0 - static_cast<uint64_t>(x));
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return wrapped(result);
}

using I = int64_t;
using U = uint64_t;
constexpr IntegerFunction kInteger[] = {
    {"identity", [](I x, I) { return x; }, "x"},
    {"to_boolean", [](I x, I) { return I{x != 0}; }, "x != 0"},
    {"abs", [](I x, I) { return x < 0 ? wrapped(0 - static_cast<U>(x)) : x; }, "x < 0 ? -x : x"},
    {"negative", [](I x, I) { return wrapped(0 - static_cast<U>(x)); }, "-x"},
    {"sign", [](I x, I) { return I{x > 0} - I{x < 0}; }, "(x > 0) - (x < 0)"},
    {"relu", [](I x, I) { return std::max(x, I{0}); }, "max(x, 0)"},
    {"floor", [](I x, I) { return x; }, "x"},
    {"ceiling", [](I x, I) { return x; }, "x"},
    {"round_even", [](I x, I) { return x; }, "x"},
    {"round_away", [](I x, I) { return x; }, "x"},
    {"add", [](I x, I y) { return wrapped(static_cast<U>(x) + static_cast<U>(y)); }, "x + y"},
    {"subtract", [](I x, I y) { return wrapped(static_cast<U>(x) - static_cast<U>(y)); }, "x - y"},
    {"multiply", [](I x, I y) { return wrapped(static_cast<U>(x) * static_cast<U>(y)); }, "x * y"},
    {"floor_divide", floor_divide, "INT_FLOOR_DIVIDE(x, y)"},
    {"truncate_divide",
     [](I x, I y) { return y == 0    ? 0
                           : y == -1 ? wrapped(0 - static_cast<U>(x))
                                     : x / y; },
     "INT_DIVIDE(x, y)"},
    {"floor_mod",
     [](I x, I y) {
       return wrapped(static_cast<U>(x) - static_cast<U>(floor_divide(x, y)) * static_cast<U>(y));
     },
     "x - INT_FLOOR_DIVIDE(x, y) * y"},
    {"mod", [](I x, I y) { return y == 0 || y == -1 ? 0 : x % y; }, "x - INT_DIVIDE(x, y) * y"},
    {"maximum", [](I x, I y) { return std::max(x, y); }, "max(x, y)"},
    {"minimum", [](I x, I y) { return std::min(x, y); }, "min(x, y)"},
    {"power", integer_power, "FN(int_power)(x, y)"},
    {"prelu", [](I x, I y) { return x > 0 ? x : wrapped(static_cast<U>(x) * static_cast<U>(y)); },
     "x > 0 ? x : x * y"},
    {"squared_difference",
     [](I x, I y) {
       const U d = static_cast<U>(x) - static_cast<U>(y);
       return wrapped(d * d);
     },
     "(x - y) * (x - y)"},
    {"equal", [](I x, I y) { return I{x == y}; }, "x == y"},
    {"not_equal", [](I x, I y) { return I{x != y}; }, "x != y"},
    {"less", [](I x, I y) { return I{x < y}; }, "x < y"},
    {"less_equal", [](I x, I y) { return I{x <= y}; }, "x <= y"},
    {"greater", [](I x, I y) { return I{x > y}; }, "x > y"},
    {"greater_equal", [](I x, I y) { return I{x >= y}; }, "x >= y"},
    {"logical_and", [](I x, I y) { return I{x && y}; }, "x && y"},
    {"logical_or", [](I x, I y) { return I{x || y}; }, "x || y"},
    {"logical_xor", [](I x, I y) { return I{!x != !y}; }, "!x != !y"},
    {"logical_not", [](I x, I) { return I{!x}; }, "!x"},
    {"bitwise_and", [](I x, I y) { return x & y; }, "x & y"},
    {"bitwise_or", [](I x, I y) { return x | y; }, "x | y"},
    {"bitwise_xor", [](I x, I y) { return x ^ y; }, "x ^ y"},
    {"bitwise_not", [](I x, I) { return ~x; }, "~x"},
    {"bitwise_left", [](I x, I y) { return y < 0 || y > 63 ? 0 : wrapped(static_cast<U>(x) << y); },
     "(y < 0 || y > 31 ? 0 : x << y)"},
    {"bitwise_right", [](I x, I y) { return y < 0 || y > 63 ? 0 : x >> y; },
     "(y < 0 || y > 31 ? 0 : x >> y)"},
};

// ---- parameters --------------------------------------------------------------------------------

// Returns a parameter that the specification allows as an input, and that is a constant scalar in
// every model.
float parameter(const OpDesc& desc, std::span<const Tensor> values, size_t i, const char* what) {
  if (i >= values.size())
    fail_model(std::string("has no input ") + std::to_string(i) + " (" + what + ")");
  if (values[i].empty()) fail_unsupported(desc.type + ": " + what + " must be constant");
  if (values[i].elements() != 1) fail_model(std::string(what) + " must be one number");
  return one_float(values[i], what);
}

std::string broadcast_mode(const Attributes& attributes) {
  return attributes.get_string("auto_broadcast", "numpy");
}

// Returns the dimensions of a PReLU slope, aligned to `shape` as in NumPy: one value per channel,
// or unchanged.
Shape slope_shape(const Shape& slope, const Shape& shape) {
  if (slope.size() != 1 || slope[0] == 1 || shape.size() < 2) return slope;
  Shape aligned(shape.size() - 1, 1);
  aligned[0] = slope[0];
  return aligned;
}

// Returns the dimensions of the second operand of "pdpd", which starts at dimension `axis`;
// dimensions past the end are dropped.
Shape pdpd_shape(Shape shape, size_t rank, int64_t axis) {
  if (axis == -1) axis = static_cast<int64_t>(rank) - static_cast<int64_t>(shape.size());
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  if (axis < 0 || axis + shape.size() > rank)
    fail_model("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) +
               " dimensions");
  shape.resize(rank - static_cast<size_t>(axis), 1);
  return shape;
}

Shape shape_for_numpy(const Entry& entry, const Attributes& attributes, const Shape& shape,
                      const Shape& first, size_t i) {
  if (i == 1 && std::string_view(entry.function ? entry.function : "") == "prelu")
    return slope_shape(shape, first);
  if (i >= 1 && broadcast_mode(attributes) == "pdpd")
    return pdpd_shape(
        shape, first.size(),
        attributes.get_int("auto_broadcast.auto_broadcast_axis", attributes.get_int("axis", -1)));
  return shape;
}

void widen(Shape& shape, const Shape& other) {
  if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
  const size_t skip = shape.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& dim = shape[skip + d];
    if (dim == 1)
      dim = other[d];
    else if (other[d] != 1 && other[d] != dim)
      fail_model("shapes do not broadcast: " + to_string(shape) + " and " + to_string(other));
  }
}

// ---- shapes ------------------------------------------------------------------------------------

std::vector<ValueInfo> infer_elementwise(const ShapeContext& context) {
  const Entry& entry = entry_of(context.type);
  const auto& inputs = context.inputs;
  size_t least = 1, most = 1;
  switch (entry.kind) {
    case Kind::unary:
      if (context.type == "Swish") most = 2;
      if (context.type == "Selu" || context.type == "HardSigmoid") least = most = 3;
      break;
    case Kind::logical_not:
    case Kind::convert:
      break;
    case Kind::select:
    case Kind::quantize:
    case Kind::dequantize:
      least = most = 3;
      break;
    case Kind::fake_quantize:
      least = most = 5;
      break;
    default:
      least = most = 2;
  }
  check_inputs(context, least, most);
  ElementType type = inputs[entry.kind == Kind::select ? 1 : 0].type;
  if (is_float(type) && std::string_view(entry.function ? entry.function : "").starts_with("bit"))
    fail_model("takes integers, not " + std::string(name_of(type)));
  Shape shape = inputs[0].shape;
  switch (entry.kind) {
    case Kind::convert:
      type = parse_type(context.attributes.get_string("destination_type"));
      break;
    case Kind::convert_like:
      type = inputs[1].type;
      break;
    case Kind::comparison:
    case Kind::logical:
    case Kind::logical_not:
      type = ElementType::boolean;
      break;
    case Kind::quantize:
      type = quantizes_to_float8(context.attributes) ? ElementType::f8e4m3 : ElementType::u8;
      break;
    case Kind::dequantize:
      type = ElementType::f32;
      break;
    default:
      break;
  }
  const bool broadcasts = entry.kind == Kind::binary || entry.kind == Kind::comparison ||
                          entry.kind == Kind::logical || entry.kind == Kind::select ||
                          entry.kind == Kind::fake_quantize || entry.kind == Kind::quantize ||
                          entry.kind == Kind::dequantize;
  if (!broadcasts) return {{type, shape}};

  const std::string mode = broadcast_mode(context.attributes);
  if (mode != "numpy" && mode != "pdpd" && mode != "none" && mode != "explicit")
    fail_model("auto_broadcast=\"" + mode + "\" is none of numpy, pdpd, none");
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool condition = entry.kind == Kind::select;
    if (entry.kind != Kind::dequantize && inputs[i].type != inputs[condition ? 1 : 0].type &&
        !(is_float(inputs[i].type) && is_float(inputs[condition ? 1 : 0].type)))
      fail_model(
          "inputs of different types: " + std::string(name_of(inputs[condition ? 1 : 0].type)) +
          " and " + std::string(name_of(inputs[i].type)));
    if ((mode == "none" || mode == "explicit") && entry.function != std::string_view("prelu") &&
        inputs[i].shape != inputs[0].shape)
      fail_model("auto_broadcast=\"none\" on shapes " + to_string(inputs[0].shape) + " and " +
                 to_string(inputs[i].shape));
    const Shape other =
        shape_for_numpy(entry, context.attributes, inputs[i].shape, inputs[0].shape, i);
    const Shape before = shape;
    widen(shape, other);
    if ((mode == "pdpd" || entry.kind == Kind::fake_quantize || context.type == "PReLU") &&
        shape != before)
      fail_model("the shape " + to_string(inputs[i].shape) + " of input " + std::to_string(i) +
                 " does not fit " + to_string(before));
  }
  if (entry.kind == Kind::fake_quantize && context.attributes.get_int("levels") < 2)
    fail_model("levels must be at least 2");
  checked_count(shape);
  return {{type, shape}};
}

// ---- reference ---------------------------------------------------------------------------------

// Calls f(output index, offsets of the operands) for all elements, in row-major order.
template <typename F>
void walk(const Shape& shape, const std::vector<Shape>& strides, F&& f) {
  const int64_t total = count(shape);
  std::vector<int64_t> at(strides.size(), 0);
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < total; ++i) {
    f(i, at);
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t k = 0; k < at.size(); ++k) at[k] += strides[k][d];
      if (++index[d] < shape[d]) break;
      for (size_t k = 0; k < at.size(); ++k) at[k] -= strides[k][d] * shape[d];
      index[d] = 0;
    }
  }
}

void evaluate_floats(const ElementFunction& function, const std::vector<Shape>& strides,
                     std::span<const Tensor> inputs, Tensor& out) {
  std::vector<std::vector<float>> in;
  for (size_t i = 0; i < function.operands; ++i) in.push_back(inputs[i].to_floats());
  std::vector<float> result(static_cast<size_t>(out.elements()));
  const auto each = [&](auto&& f) {
    walk(out.shape(), strides,
         [&](int64_t i, const std::vector<int64_t>& at) { result[i] = f(at); });
  };
  const UnaryFunction* unary = function.operands == 1 ? find_unary(function.name) : nullptr;
  const BinaryFunction* binary = function.operands == 2 ? find_binary(function.name) : nullptr;
  using At = const std::vector<int64_t>&;
  if (unary) {
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = unary->apply(in[0][i], function.alpha, function.beta);
  } else if (binary) {
    each([&](At at) { return binary->apply(in[0][at[0]], in[1][at[1]]); });
  } else if (is_comparison(function.name)) {
    each([&](At at) { return compare(function.name, in[0][at[0]], in[1][at[1]]) ? 1.f : 0.f; });
  } else if (function.name == "select") {
    each([&](At at) { return in[0][at[0]] != 0 ? in[1][at[1]] : in[2][at[2]]; });
  } else if (function.name == "fake_quantize") {
    each([&](At at) {
      return fake_quantize(in[0][at[0]], in[1][at[1]], in[2][at[2]], in[3][at[3]], in[4][at[4]],
                           function.alpha, function.beta);
    });
  } else if (function.name == "quantize") {
    const UnaryFunction* to_byte = find_unary("to_byte");
    each([&](At at) {
      return to_byte->apply(in[0][at[0]] * in[1][at[1]] + in[2][at[2]], function.alpha,
                            function.beta);
    });
  } else if (function.name == "scale_and_shift") {
    each([&](At at) { return in[0][at[0]] * in[1][at[1]] + in[2][at[2]]; });
  } else if (function.name == "to_boolean") {
    each([&](At at) { return in[0][at[0]] != 0 ? 1.f : 0.f; });
  } else {
    fail_unsupported(function.name + " of floats");
  }
  const Tensor converted = Tensor::of(out.type(), out.shape(), result);
  copy_all(converted, out);
}

void evaluate_integers(const ElementFunction& function, const std::vector<Shape>& strides,
                       std::span<const Tensor> inputs, Tensor& out) {
  std::vector<std::vector<int64_t>> in;
  for (size_t i = 0; i < function.operands; ++i) in.push_back(inputs[i].to_ints());
  std::vector<int64_t> result(static_cast<size_t>(out.elements()));
  const bool select = function.name == "select", clamp = function.name == "clamp";
  const IntegerFunction* exact = find_integer(function.name);
  const UnaryFunction* unary = find_unary(function.name);
  if (!exact && !unary && !select) fail_unsupported(function.name + " of integers");
  std::vector<float> rounded(exact || select || clamp ? 0 : result.size());
  const auto of_type = [&](float bound) {
    return Tensor::of(out.type(), {1}, std::vector{bound}).to_ints()[0];
  };
  const int64_t lowest = clamp ? of_type(function.alpha) : 0;
  const int64_t highest = clamp ? of_type(function.beta) : 0;
  walk(out.shape(), strides, [&](int64_t i, const std::vector<int64_t>& at) {
    const int64_t x = in[0][at[0]];
    if (select)
      result[i] = x ? in[1][at[1]] : in[2][at[2]];
    else if (clamp)
      result[i] = x < lowest ? lowest : x > highest ? highest : x;
    else if (exact)
      result[i] = exact->apply(x, function.operands > 1 ? in[1][at[1]] : 0);
    else
      rounded[i] =
          std::nearbyint(unary->apply(static_cast<float>(x), function.alpha, function.beta));
  });
  if (!rounded.empty()) return copy_all(Tensor::of(out.type(), out.shape(), rounded), out);
  store_ints(result, out);
}

void evaluate_elementwise(const OpDesc& desc, std::span<const Tensor> inputs,
                          std::span<Tensor> outputs) {
  Tensor& out = outputs[0];
  const ElementFunction function = element_function(desc, inputs);
  if (function.name == "identity") return copy_all(inputs[0].convert(out.type()), out);
  std::vector<Shape> strides;
  bool floats = is_float(out.type());
  OpDesc plain = desc;  // row-major, independent of the layouts on the device
  plain.outputs[0] = TensorDesc::row_major(out.type(), out.shape());
  for (size_t i = 0; i < function.operands; ++i) {
    plain.inputs[i] = TensorDesc::row_major(inputs[i].type(), inputs[i].shape());
    floats |= is_float(inputs[i].type());
  }
  for (size_t i = 0; i < function.operands; ++i)
    strides.push_back(aligned_operand(plain, i).strides);
  if (floats)
    evaluate_floats(function, strides, inputs, out);
  else
    evaluate_integers(function, strides, inputs, out);
}

// ---- as a tail ---------------------------------------------------------------------------------

float stated_step(const Attributes& attributes) {
  return static_cast<float>(attributes.get_float(kQuantizationStep, 0));
}

// Returns x -> round((x - il) / (ih - il) * (levels - 1)) / (levels - 1) * (oh - ol) + ol, with x
// clamped to the limits, as steps with constants computed per channel (or in the shape of the
// ranges), so that layers with different ranges share a kernel. Values are clamped as integers.
// With a stated step it is round(x / step), limited, times the output's step.
TailSteps fake_quantize_tail(const OpDesc& desc) {
  constexpr float kMostLevels = 1 << 22;  // the range in which "to_level" rounds correctly
  Shape shape, aligned[4];
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& range = desc.constants[i + 1];
    if (range.empty()) return {};
    aligned[i] = shape_for_numpy(entry_of(desc.type), desc.attributes, range.shape(),
                                 desc.inputs[0].shape, i + 1);
    widen(shape, aligned[i]);
  }
  const float last = static_cast<float>(desc.attributes.get_int("levels") - 1);
  if (last >= kMostLevels) return {};
  const float stated = stated_step(desc.attributes);
  std::vector<float> ranges[4], scale, shift, step;
  for (size_t i = 0; i < 4; ++i) {
    Tensor wide = Tensor::allocate(ElementType::f32, shape);
    const std::vector<float> values = desc.constants[i + 1].to_floats();
    OpDesc alone;
    alone.type = "FakeQuantize";
    alone.inputs = {TensorDesc::row_major(ElementType::f32, aligned[i])};
    alone.outputs = {TensorDesc::row_major(ElementType::f32, shape)};
    float* to = wide.mutable_data<float>();
    walk(shape, {aligned_operand(alone, 0).strides},
         [&](int64_t k, const auto& at) { to[k] = values[at[0]]; });
    ranges[i] = wide.to_floats();
  }
  for (size_t k = 0; k < ranges[0].size(); ++k) {
    const float width = ranges[1][k] - ranges[0][k];
    if (!(width > 0))
      return {};  // Inverted limits, or a step: only the operation's own kernel handles them.
                  // do
    scale.push_back(stated > 0 ? 1 / stated : last / width);
    shift.push_back(stated > 0 ? 0 : -ranges[0][k] * scale.back());
    step.push_back((ranges[3][k] - ranges[2][k]) / last);
  }
  // Levels count from 0 with a stated step, else from the lower limit.
  float lowest = 0;
  if (stated > 0) {
    if (ranges[0].size() != 1) return {};
    lowest = std::nearbyint(ranges[0][0] / stated);
    ranges[2][0] = 0;
  }
  TailSteps tail;
  int next = static_cast<int>(desc.inputs.size());
  const auto binary = [&](const char* function, const std::vector<float>& values) {
    tail.steps.push_back({function, 0, 0, next++, false});
    tail.constants.push_back(Tensor::of(ElementType::f32, shape, values));
  };
  const auto unless = [](const std::vector<float>& values, float neutral) {
    return std::any_of(values.begin(), values.end(), [&](float v) { return v != neutral; });
  };
  if (unless(scale, 1)) binary("multiply", scale);
  if (unless(shift, 0)) binary("add", shift);
  tail.steps.push_back({"to_level", lowest, lowest + last});
  if (unless(step, 1)) binary("multiply", step);
  if (unless(ranges[2], 0)) binary("add", ranges[2]);
  return tail;
}

TailSteps elementwise_as_tail(const OpDesc& desc, int main) {
  const Entry& entry = entry_of(desc.type);
  if (entry.kind == Kind::quantize) {
    if (main != 0) return {};
    const ElementFunction function = element_function(desc, desc.constants);
    const bool float8 = quantizes_to_float8(desc.attributes);
    return {{{"multiply", 0, 0, 1},
             {"add", 0, 0, 2},
             {float8 ? "store_f8e4m3" : "to_byte", function.alpha, function.beta}},
            {}};
  }
  if (!is_float(desc.outputs[0].type) || !is_float(desc.inputs[main].type)) return {};
  if (entry.kind == Kind::fake_quantize) return main == 0 ? fake_quantize_tail(desc) : TailSteps{};
  if (entry.kind == Kind::convert || entry.kind == Kind::convert_like)
    return main == 0 ? TailSteps{{{"linear", 1, 0}}, {}} : TailSteps{};
  if (entry.kind != Kind::unary && entry.kind != Kind::binary) return {};
  const ElementFunction function = element_function(desc, desc.constants);
  if (function.operands == 1) {
    if (main != 0) return {};
    return {{{function.name, function.alpha, function.beta}}, {}};
  }
  const size_t other = main == 0 ? 1 : 0;
  if (!is_float(desc.inputs[other].type)) return {};
  PostOp step{function.name, 0, 0, static_cast<int>(other), main == 1};
  const Shape& shape = desc.inputs[1].shape;
  const Shape aligned = shape_for_numpy(entry, desc.attributes, shape, desc.inputs[0].shape, 1);
  if (aligned == shape) return {{step}, {}};
  if (other != 1 || desc.constants[1].empty()) return {};
  step.operand = static_cast<int>(desc.inputs.size());
  return {{step}, {desc.constants[1].reshaped(aligned)}};
}

}  // namespace

const std::string_view kIntegerHelpers = R"(
#define INT_DIVIDE(x, y) ((y) == 0 ? 0 : (y) == -1 ? 0 - (x) : (x) / (y))
#define INT_FLOOR_DIVIDE(x, y) \
  (INT_DIVIDE(x, y) - ((y) != 0 && (y) != -1 && (x) % (y) != 0 && ((x) < 0) != ((y) < 0)))
int FN(int_power)(int base, int n) {
  if (n < 0) return base == 1 ? 1 : base == -1 ? (n % 2 ? -1 : 1) : 0;
  uint result = 1, factor = as_uint(base);
  for (; n; n >>= 1, factor *= factor)
    if (n & 1) result *= factor;
  return as_int(result);
}
)";

const IntegerFunction* find_integer(std::string_view name) {
  for (const IntegerFunction& function : kInteger)
    if (function.name == name) return &function;
  return nullptr;
}

std::string_view comparison_sign(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> signs[] = {
      {"equal", "=="},      {"not_equal", "!="}, {"less", "<"},
      {"less_equal", "<="}, {"greater", ">"},    {"greater_equal", ">="}};
  for (const auto& [function, sign] : signs)
    if (function == name) return sign;
  return "";
}

bool is_comparison(std::string_view name) { return !comparison_sign(name).empty(); }

bool compare(std::string_view name, float x, float y) {
  if (name == "equal") return x == y;
  if (name == "not_equal") return x != y;
  if (name == "less") return x < y;
  if (name == "less_equal") return x <= y;
  if (name == "greater") return x > y;
  return x >= y;
}

float fake_quantize(float x, float in_low, float in_high, float out_low, float out_high,
                    float levels, float step) {
  if (step > 0) {
    const float lowest = std::nearbyint(in_low / step), highest = lowest + (levels - 1);
    return std::min(std::max(std::nearbyint(x / step), lowest), highest) *
           ((out_high - out_low) / (levels - 1));
  }
  if (x <= std::min(in_low, in_high)) return out_low;
  if (x > std::max(in_low, in_high)) return out_high;
  return std::nearbyint((x - in_low) / (in_high - in_low) * (levels - 1)) / (levels - 1) *
             (out_high - out_low) +
         out_low;
}

ElementFunction element_function(const OpDesc& desc, std::span<const Tensor> values) {
  const Entry& entry = entry_of(desc.type);
  const Attributes& attributes = desc.attributes;
  ElementFunction f{entry.function ? entry.function : ""};
  if (desc.type == "Clamp") {
    f.alpha = static_cast<float>(attributes.get_float("min"));
    f.beta = static_cast<float>(attributes.get_float("max"));
    // Takes the largest f32 for no limit, as converters write it.
    constexpr float kMost = std::numeric_limits<float>::max();
    if (f.alpha <= -kMost) f.alpha = -std::numeric_limits<float>::infinity();
    if (f.beta >= kMost) f.beta = std::numeric_limits<float>::infinity();
    if (const ElementType type = desc.inputs[0].type; !is_float(type)) {
      // Rounds the bounds to integers between them, and limits these to the type's range.
      const auto of_type = [&](float bound) {
        return Tensor::of(type, {1}, std::vector{bound}).to_floats()[0];
      };
      f.alpha = of_type(std::ceil(f.alpha));
      f.beta = of_type(std::floor(f.beta));
    }
  } else if (desc.type == "Elu") {
    f.alpha = static_cast<float>(attributes.get_float("alpha"));
  } else if (desc.type == "Gelu") {
    const std::string mode = attributes.get_string("approximation_mode", "ERF");
    if (mode != "ERF" && mode != "erf" && mode != "TANH" && mode != "tanh")
      fail_model("approximation_mode=\"" + mode + "\" is none of erf, tanh");
    f.name = mode == "ERF" || mode == "erf" ? "gelu_erf" : "gelu_tanh";
  } else if (desc.type == "Round") {
    const std::string mode = attributes.get_string("mode", "half_to_even");
    if (mode != "half_to_even" && mode != "half_away_from_zero")
      fail_model("mode=\"" + mode + "\" is none of half_to_even, half_away_from_zero");
    f.name = mode == "half_to_even" ? "round_even" : "round_away";
  } else if (desc.type == "Selu" || desc.type == "HardSigmoid") {
    f.alpha = parameter(desc, values, 1, "alpha");
    f.beta = parameter(desc, values, 2, desc.type == "Selu" ? "lambda" : "beta");
  } else if (desc.type == "Swish") {
    f.alpha = 1;
    if (desc.own_inputs > 1) {
      if (!values[1].empty())
        f.alpha = parameter(desc, values, 1, "beta");
      else
        f = {"swish_by", 0, 0, 2};
    }
  } else if (desc.type == "ToFloat8") {
    const std::string type = attributes.get_string("type");
    const Float8Format* format = find_float8(type);
    if (!format) fail_model("type=\"" + type + "\" is none of f8e4m3, f8e5m2");
    f.name = "to_" + type;
    f.alpha = format->most;
    f.beta = attributes.get_bool("saturate", false) ? format->most : format->beyond;
  } else if (desc.type == "Divide" && !is_float(desc.inputs[0].type)) {
    f.name = attributes.get_bool("m_pythondiv", true) ? "floor_divide" : "truncate_divide";
  } else if (desc.type == "BitwiseNot" && desc.inputs[0].type == ElementType::boolean) {
    f.name = "logical_not";
  } else if (desc.type == "FakeQuantize") {
    f.alpha = static_cast<float>(attributes.get_int("levels"));
    f.beta = stated_step(attributes);
  } else if (entry.kind == Kind::quantize && quantizes_to_float8(attributes)) {
    f = {"scale_and_shift", -kFloat8E4M3.most, kFloat8E4M3.most};  // storing rounds and limits
  } else if (entry.kind == Kind::quantize) {
    f.alpha = static_cast<float>(attributes.get_int("lowest", 0));
    f.beta = f.alpha + static_cast<float>(attributes.get_int("levels") - 1);
  } else if (entry.kind == Kind::convert) {
    if (attributes.get_string("destination_type") == "boolean") f.name = "to_boolean";
  } else if (entry.kind == Kind::convert_like) {
    if (desc.outputs[0].type == ElementType::boolean ||
        (values.size() > 1 && !values[1].empty() && values[1].type() == ElementType::boolean))
      f.name = "to_boolean";
  }
  switch (entry.kind) {
    case Kind::binary:
    case Kind::comparison:
    case Kind::logical:
      f.operands = 2;
      break;
    case Kind::select:
    case Kind::quantize:
    case Kind::dequantize:
      f.operands = 3;
      break;
    case Kind::fake_quantize:
      f.operands = 5;
      break;
    default:
      break;
  }
  // Common exponents have separate functions.
  if (f.name == "power" && is_float(desc.inputs[0].type) && values.size() > 1 &&
      !values[1].empty() && values[1].elements() == 1 &&
      desc.outputs[0].shape == desc.inputs[0].shape) {
    const float exponent = one_float(values[1], "exponent");
    if (exponent == 2) f = {"square"};
    if (exponent == 0.5f) f = {"sqrt"};
    if (exponent == 1) f = {"linear", 1, 0};
  }
  return f;
}

TensorDesc aligned_operand(const OpDesc& desc, size_t i) {
  const Shape& out = desc.outputs[0].shape;
  const TensorDesc& operand = desc.inputs[i];
  const Entry& entry = entry_of(desc.type);
  const bool own = i < desc.own_inputs;
  const Shape wanted =
      own ? shape_for_numpy(entry, desc.attributes, operand.shape, desc.inputs[0].shape, i)
          : operand.shape;
  // `wanted` has the operand's dimensions in order, with ones inserted or dropped: finds the stride
  // of each.
  if (wanted.size() > out.size())
    fail_model("shape " + to_string(operand.shape) + " does not fit " + to_string(out));
  TensorDesc aligned{operand.type, out, Shape(out.size(), 0), operand.offset};
  const size_t skip = out.size() - wanted.size();
  size_t from = 0;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == 1) continue;
    while (from < operand.shape.size() && operand.shape[from] == 1) ++from;
    if (from >= operand.shape.size() || operand.shape[from] != wanted[d] ||
        wanted[d] != out[skip + d])
      fail_model("shape " + to_string(operand.shape) + " does not fit " + to_string(out));
    aligned.strides[skip + d] = operand.strides[from++];
  }
  return aligned;
}

// Rewrites operations that treat booleans differently as ones whose type or attributes state that,
// because booleans are bytes on the device.
static void expand_by_type(Expansion& x) {
  if (x.context().type == "ConvertLike")
    x.outputs = {x.convert(0, x.info(1).type)};
  else if (x.info(0).type == ElementType::boolean)
    x.outputs = {x.step("LogicalNot", 1, {0})};
}

std::vector<OpDef> elementwise_ops() {
  std::vector<OpDef> ops;
  for (const Entry& entry : kTable) {
    OpDef def;
    def.type = entry.type;
    def.opsets = opset_range(entry.first_opset);
    def.infer_shapes = infer_elementwise;
    def.evaluate = evaluate_elementwise;
    def.families = {&kElementwiseFamily};
    def.layout = LayoutRule::follow;
    def.as_tail = elementwise_as_tail;
    def.converts = true;
    if (def.type == "BitwiseNot" || def.type == "ConvertLike") def.expand = expand_by_type;
    ops.push_back(std::move(def));
  }
  return ops;
}

}  // namespace clinfer
