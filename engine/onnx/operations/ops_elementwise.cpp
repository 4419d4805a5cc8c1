// Translates element-wise functions with broadcasting, casts, and operations that select between
// values.
#include <cmath>
#include <limits>
#include <map>

#include "engine/onnx/op_table.h"
#include "engine/onnx/operations/signs.h"

namespace clinfer {

namespace {

// ---- one input ----------------------------------------------------------------------------------

struct Same {
  const char* type;
  int opset;
};

// Translates operations that the engine has under another name.
void same(OnnxNode& n) {
  static const auto& kSame = *new const std::map<std::string, Same>{
      {"Abs", {"Abs", 1}},           {"Acos", {"Acos", 1}},
      {"Acosh", {"Acosh", 4}},       {"Asin", {"Asin", 1}},
      {"Asinh", {"Asinh", 4}},       {"Atan", {"Atan", 1}},
      {"Atanh", {"Atanh", 4}},       {"BitwiseNot", {"BitwiseNot", 13}},
      {"Ceil", {"Ceiling", 1}},      {"Cos", {"Cos", 1}},
      {"Cosh", {"Cosh", 1}},         {"Erf", {"Erf", 1}},
      {"Exp", {"Exp", 1}},           {"Floor", {"Floor", 1}},
      {"HardSwish", {"HSwish", 4}},  {"IsNaN", {"IsNaN", 10}},
      {"Log", {"Log", 1}},           {"Mish", {"Mish", 4}},
      {"Neg", {"Negative", 1}},      {"Not", {"LogicalNot", 1}},
      {"Relu", {"ReLU", 1}},         {"Sigmoid", {"Sigmoid", 1}},
      {"Sign", {"Sign", 1}},         {"Sin", {"Sin", 1}},
      {"Sinh", {"Sinh", 1}},         {"Softplus", {"SoftPlus", 4}},
      {"Softsign", {"SoftSign", 9}}, {"Sqrt", {"Sqrt", 1}},
      {"Tan", {"Tan", 1}},           {"Tanh", {"Tanh", 1}},
  };
  const Same& ours = kSame.at(n.type());
  n.out(n.op(ours.type, ours.opset, {n.in(0)}));
}

void identity(OnnxNode& n) { n.out(n.in(0)); }

void dropout(OnnxNode& n) {
  if (n.has(2) && n.known_ints(n.in(2)).value_or(std::vector<int64_t>{1})[0] != 0) {
    const bool drops_nothing = n.has(1) && n.need_float(n.in(1), "the ratio") == 0;
    if (!drops_nothing) unsupported_node("training mode is not supported");
  }
  n.out(n.in(0));
  if (!n.wants(1)) return;
  const Edge yes = n.constant(Tensor::of(ElementType::boolean, {}, std::vector<int64_t>{1}));
  n.out(1, n.op("Broadcast", 3, {yes, n.shape_of(n.in(0))}, {{"mode", "numpy"}}));
}

void reciprocal(OnnxNode& n) { n.out(n.divide(n.number(1), n.in(0))); }
void round_even(OnnxNode& n) { n.out(n.round(n.in(0))); }

void is_inf(OnnxNode& n) {
  n.out(n.op("IsInf", 10, {n.in(0)},
             {{"detect_negative", text_of(n.int_of("detect_negative", 1) != 0)},
              {"detect_positive", text_of(n.int_of("detect_positive", 1) != 0)}}));
}

void elu(OnnxNode& n) {
  n.out(n.op("Elu", 1, {n.in(0)}, {{"alpha", text_of(double{n.float_of("alpha", 1.f)})}}));
}

void selu(OnnxNode& n) {
  const float alpha = n.float_of("alpha", 1.67326319217681884765625f),
              gamma = n.float_of("gamma", 1.05070102214813232421875f);
  n.out(n.op("Selu", 1, {n.in(0), n.number(alpha), n.number(gamma)}));
}

void celu(OnnxNode& n) {
  const float alpha = n.float_of("alpha", 1.f);
  const Edge scaled = n.multiply(n.in(0), n.number(1 / alpha));
  n.out(n.multiply(n.op("Elu", 1, {scaled}, {{"alpha", "1"}}), n.number(alpha)));
}

void hard_sigmoid(OnnxNode& n) {
  n.out(n.op("HardSigmoid", 1,
             {n.in(0), n.number(n.float_of("alpha", 0.2f)), n.number(n.float_of("beta", 0.5f))}));
}

void leaky_relu(OnnxNode& n) {
  n.out(n.op("PReLU", 1, {n.in(0), n.number(n.float_of("alpha", 0.01f))}));
}

void thresholded_relu(OnnxNode& n) {
  const Edge alpha = n.number(n.float_of("alpha", 1.f));
  n.out(n.op("Select", 1, {n.op("Greater", 1, {n.in(0), alpha}), n.in(0), n.number(0)}));
}

void shrink(OnnxNode& n) {
  const Edge x = n.convert(n.in(0), ElementType::f32);
  const float bias = n.float_of("bias", 0.f), lambd = n.float_of("lambd", 0.5f);
  const Edge high =
      n.op("Select", 1,
           {n.op("Greater", 1, {x, n.number(lambd)}), n.subtract(x, n.number(bias)), n.number(0)});
  n.out(n.convert(
      n.op("Select", 1, {n.op("Less", 1, {x, n.number(-lambd)}), n.add(x, n.number(bias)), high}),
      n.type(n.in(0))));
}

Edge gelu_of(OnnxNode& n, const Edge& x, const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh")
    bad_node("approximate=\"" + printable(approximate) + "\" is none of none, tanh");
  return n.op("Gelu", 7, {x}, {{"approximation_mode", approximate == "tanh" ? "TANH" : "ERF"}});
}

void gelu(OnnxNode& n) { n.out(gelu_of(n, n.in(0), n.string_of("approximate", "none"))); }

// Adds an optional bias before the Gelu, as com.microsoft's forms do.
void biased_gelu(OnnxNode& n) {
  const Edge x = n.has(1) ? n.add(n.in(0), n.in(1)) : n.in(0);
  n.out(gelu_of(n, x, n.type() == "FastGelu" ? "tanh" : "none"));
}

void swish(OnnxNode& n) {
  const float alpha = n.float_of("alpha", n.type() == "QuickGelu" ? 1.702f : 1.f);
  n.out(n.op("Swish", 4, {n.in(0), n.number(alpha)}));
}

void swiglu(OnnxNode& n) {
  const Edge gate = n.op("Swish", 4, {n.in(0), n.number(n.float_of("alpha", 1.f))});
  n.out(n.multiply(gate, n.in(1)));
}

// ---- two inputs ---------------------------------------------------------------------------------

// Returns the second operand; before opset 7 it starts at an axis of the first one.
Edge second_operand(OnnxNode& n) {
  const Edge b = n.in(1);
  if (n.opset() >= 7 || !n.has_attribute("axis")) return b;
  const int64_t rank = n.rank(n.in(0)), axis = n.axis(n.int_of("axis"), rank);
  std::vector<int64_t> trailing;
  for (int64_t d = n.rank(b); d < rank - axis; ++d) trailing.push_back(d);
  return n.unsqueeze(b, trailing);
}

void same_binary(OnnxNode& n) {
  static const auto& kSame = *new const std::map<std::string, Same>{
      {"Add", {"Add", 1}},
      {"And", {"LogicalAnd", 1}},
      {"BitwiseAnd", {"BitwiseAnd", 13}},
      {"BitwiseOr", {"BitwiseOr", 13}},
      {"BitwiseXor", {"BitwiseXor", 13}},
      {"Equal", {"Equal", 1}},
      {"Greater", {"Greater", 1}},
      {"GreaterOrEqual", {"GreaterEqual", 1}},
      {"Less", {"Less", 1}},
      {"LessOrEqual", {"LessEqual", 1}},
      {"Mul", {"Multiply", 1}},
      {"Or", {"LogicalOr", 1}},
      {"Sub", {"Subtract", 1}},
      {"Xor", {"LogicalXor", 1}},
  };
  const Same& ours = kSame.at(n.type());
  n.out(n.op(ours.type, ours.opset, {n.in(0), second_operand(n)}));
}

void div(OnnxNode& n) { n.out(n.divide(n.in(0), second_operand(n))); }

void bit_shift(OnnxNode& n) {
  const std::string direction = n.string_of("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    bad_node("direction=\"" + printable(direction) + "\" is none of LEFT, RIGHT");
  if (direction == "LEFT") return n.out(n.op("BitwiseLeftShift", 15, {n.in(0), n.in(1)}));
  // A shift by the type's number of bits or more leaves only the sign.
  Edge by = n.in(1);
  const ElementType type = n.type(n.in(0));
  const bool has_sign = type == ElementType::i8 || type == ElementType::i16 ||
                        type == ElementType::i32 || type == ElementType::i64;
  if (has_sign) {
    const Edge most = n.number_like(by, static_cast<double>(size_of(type) * 8 - 1));
    const Edge negative = n.op("Less", 1, {by, n.number_like(by, 0)});
    by = n.op("Select", 1, {negative, most, n.op("Minimum", 1, {by, most})});
  }
  n.out(n.op("BitwiseRightShift", 15, {n.in(0), by}));
}

void mod(OnnxNode& n) {
  const bool as_c = n.int_of("fmod", 0) != 0;
  if (as_c || !is_float(n.type(n.in(0))))
    return n.out(n.op(as_c ? "Mod" : "FloorMod", 1, {n.in(0), n.in(1)}));
  // The result has the divisor's sign, even if the divisor is infinite.
  const Edge y = n.in(1), rest = n.op("Mod", 1, {n.in(0), y}), zero = n.number(0);
  const Edge below = n.op("Less", 1, {rest, zero}), divisor_below = n.op("Less", 1, {y, zero});
  const Edge differ = n.op("LogicalXor", 1, {below, divisor_below});
  const Edge moves = n.op("LogicalAnd", 1, {differ, n.op("NotEqual", 1, {rest, zero})});
  n.out(n.op("Select", 1, {moves, n.add(rest, y), rest}));
}

// The exponent's type may differ from the base's, which is also the result's.
void power(OnnxNode& n) {
  const Edge base = n.in(0), exponent = second_operand(n);
  const ElementType type = n.type(base);
  const bool in_floats = is_float(type) || is_float(n.type(exponent));
  const ElementType computed = in_floats ? ElementType::f32 : type;
  n.out(n.convert(n.op("Power", 1, {n.convert(base, computed), n.convert(exponent, computed)}),
                  type));
}

// The slopes' shape is aligned from the right; the engine would take a single dimension for
// channels.
void prelu(OnnxNode& n) {
  const Edge x = n.in(0);
  Edge slope = n.in(1);
  if (n.opset() < 7 && n.rank(slope) == 1) {
    n.out(n.op("PReLU", 1, {x, slope}));
    return;
  }
  if (n.rank(slope) == 1 && n.dim(slope, 0) != 1 && n.rank(x) > 1)
    slope = n.along(slope, n.rank(x) - 1, n.rank(x));
  if (!is_float(n.type(x))) {
    const Edge negative = n.op("Less", 1, {x, n.number_like(x, 0)});
    n.out(n.op("Select", 1, {negative, n.multiply(x, slope), x}));
    return;
  }
  n.out(n.op("PReLU", 1, {x, slope}));
}

// ---- any number of inputs -----------------------------------------------------------------------

void variadic(OnnxNode& n) {
  const char* type = n.type() == "Max" ? "Maximum" : n.type() == "Min" ? "Minimum" : "Add";
  Edge total = n.in(0);
  for (size_t i = 1; i < n.input_count(); ++i) total = n.op(type, 1, {total, n.in(i)});
  if (n.type() == "Mean")
    total = n.multiply(total, n.number(1 / static_cast<float>(n.input_count())));
  n.out(total);
}

void clip(OnnxNode& n) {
  const Edge x = n.in(0);
  const ElementType type = n.type(x);
  if (n.opset() < 11) {
    const float most = std::numeric_limits<float>::max();
    n.out(n.clamp(x, double{n.float_of("min", -most)}, double{n.float_of("max", most)}));
    return;
  }
  const bool has_low = n.has(1), has_high = n.has(2);
  const auto constant = [&](size_t i) { return !n.has(i) || !n.known(n.in(i)).empty(); };
  if (is_float(type) && (has_low || has_high) && constant(1) && constant(2)) {
    const double infinity = std::numeric_limits<float>::infinity();
    const double low = has_low ? n.need_float(n.in(1), "min") : -infinity,
                 high = has_high ? n.need_float(n.in(2), "max") : infinity;
    const double most = std::numeric_limits<float>::max();
    if (low <= high) {
      n.out(n.clamp(x, std::max(low, -most), std::min(high, most)));
      return;
    }
  }
  Edge y = x;
  if (has_low) y = n.op("Maximum", 1, {y, n.in(1)});
  if (has_high) y = n.op("Minimum", 1, {y, n.in(2)});
  n.out(y);
}

// Returns whether `e` broadcasts to the shape of `to`.
bool fits(OnnxNode& n, const Edge& e, const Edge& to) {
  const int64_t before = n.rank(to) - n.rank(e);
  bool fit = before >= 0;
  for (int64_t d = 0; fit && d < n.rank(e); ++d)
    fit = !n.varies(e, d) && !n.varies(to, d + before) &&
          (n.dim(e, d) == 1 || n.dim(e, d) == n.dim(to, d + before));
  return fit;
}

// PyTorch corrects negative indices before it divides them; indices that an operation found are
// never negative.
void where(OnnxNode& n) {
  const Edge condition = n.in(0), yes = n.in(1), no = n.in(2);
  if (never_true(condition) && n.type(yes) == n.type(no) && fits(n, condition, no) &&
      fits(n, yes, no))
    return n.out(no);
  n.out(n.op("Select", 1, {condition, yes, no}));
}

// ---- types --------------------------------------------------------------------------------------

Edge as_float8(OnnxNode& n, const Float8Format& format) {
  return n.to_float8(n.in(0), format, n.int_of("saturate", 1) != 0);
}

void cast(OnnxNode& n) {
  const auto to = static_cast<int>(n.int_of("to"));
  const Float8Format* format = float8_of(to);
  if (!format && !narrow_name_of(to).empty())
    unsupported_node("values of 4 bits are only supported as constants");
  n.out(format ? as_float8(n, *format) : n.convert(n.in(0), onnx_type(to)));
}

void cast_like(OnnxNode& n) {
  const Float8Format* format = find_float8(narrow_type(n.in(1)));
  n.out(format ? as_float8(n, *format) : n.convert(n.in(0), n.type(n.in(1))));
}

}  // namespace

std::vector<OnnxOp> onnx_elementwise_ops() {
  std::vector<OnnxOp> ops;
  for (const char* type :
       {"Abs",  "Acos",     "Acosh",    "Asin", "Asinh", "Atan",    "Atanh",     "BitwiseNot",
        "Ceil", "Cos",      "Cosh",     "Erf",  "Exp",   "Floor",   "HardSwish", "IsNaN",
        "Log",  "Mish",     "Neg",      "Not",  "Relu",  "Sigmoid", "Sign",      "Sin",
        "Sinh", "Softplus", "Softsign", "Sqrt", "Tan",   "Tanh"})
    ops.push_back({type, same});
  for (const char* type :
       {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterOrEqual",
        "Less", "LessOrEqual", "Mul", "Or", "Sub", "Xor"})
    ops.push_back({type, same_binary});
  for (const char* type : {"Max", "Min", "Sum", "Mean"}) ops.push_back({type, variadic});
  const std::vector<OnnxOp> others = {
      {"BitShift", bit_shift},
      {"Cast", cast},
      {"CastLike", cast_like},
      {"Celu", celu},
      {"Clip", clip},
      {"Div", div},
      {"Dropout", dropout},
      {"Elu", elu},
      {"Gelu", gelu},
      {"HardSigmoid", hard_sigmoid},
      {"Identity", identity},
      {"IsInf", is_inf},
      {"LeakyRelu", leaky_relu},
      {"Mod", mod},
      {"PRelu", prelu},
      {"Pow", power},
      {"Reciprocal", reciprocal},
      {"Round", round_even},
      {"Selu", selu},
      {"Shrink", shrink},
      {"SwiGLU", swiglu},
      {"Swish", swish},
      {"ThresholdedRelu", thresholded_relu},
      {"Where", where},
      // The translation passes the numbers on and drops the names, which are labels (metadata.cpp).
      {"ZipMap", identity, kLearning},
      {"BiasGelu", biased_gelu, kMicrosoft},
      {"FastGelu", biased_gelu, kMicrosoft},
      {"Gelu", biased_gelu, kMicrosoft},
      {"QuickGelu", swish, kMicrosoft},
  };
  ops.insert(ops.end(), others.begin(), others.end());
  return ops;
}

}  // namespace clinfer
