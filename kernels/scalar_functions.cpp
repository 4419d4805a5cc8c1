// The table of element functions. The formulas are those of OpenVINO's specifications of the
// operations with the same names.
#include "kernels/scalar_functions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "kernels/base/float8.h"

namespace clinfer {

namespace {

float nearest_f8e4m3(float x, float, float) { return nearest_float8(x, kFloat8E4M3); }

float nearest_level(float x, float low, float high) {
  return std::min(std::max(std::nearbyint(x), low), high);
}

// Each row has f(x), rounded as written, and the same formula in OpenCL for float or floatN. NaN
// gives NaN (at_least() and at_most() of functions.cl keep it), except in functions that make
// bytes.
constexpr UnaryFunction kUnary[] = {
    {"abs", [](float x, float, float) { return std::fabs(x); }, "fabs(x)"},
    {"acos", [](float x, float, float) { return std::acos(x); }, "acos(x)"},
    {"acosh", [](float x, float, float) { return std::acosh(x); }, "acosh(x)"},
    {"asin", [](float x, float, float) { return std::asin(x); }, "asin(x)"},
    {"asinh", [](float x, float, float) { return std::asinh(x); }, "asinh(x)"},
    {"atan", [](float x, float, float) { return std::atan(x); }, "atan(x)"},
    {"atanh", [](float x, float, float) { return std::atanh(x); }, "atanh(x)"},
    {"ceiling", [](float x, float, float) { return std::ceil(x); }, "ceil(x)"},
    // clamp and to_level in fewer instructions of GPUs, for numbers; alpha of what is none
    {"clamp_number",
     [](float x, float a, float b) { return std::isnan(x) ? a : std::min(std::max(x, a), b); },
     "fmin(fmax(x, ALPHA), BETA)"},
    {"number_to_level",
     [](float x, float a, float b) { return std::isnan(x) ? a : nearest_level(x, a, b); },
     "round_even(fmin(fmax(x, ALPHA), BETA))"},
    // number_to_level of x * (beta - alpha) + alpha
    {"unit_to_level",
     [](float x, float a, float b) { return nearest_level(x * (b - a) + a, a, b); },
     "saturated(x) * (BETA - ALPHA) + (12582912.0f + ALPHA) - 12582912.0f"},
    // min(max(x, alpha), beta)
    {"clamp", [](float x, float a, float b) { return std::min(std::max(x, a), b); },
     "at_most(at_least(x, ALPHA), BETA)"},
    {"cos", [](float x, float, float) { return std::cos(x); }, "cos(x)"},
    {"cosh", [](float x, float, float) { return std::cosh(x); }, "cosh(x)"},
    {"elu", [](float x, float a, float) { return x > 0 ? x : a * std::expm1(x); },
     "at_least(x, 0.0f) + ALPHA * gate_expm1(at_most(x, 0.0f))"},
    {"erf", [](float x, float, float) { return std::erf(x); }, "gate_erf(x)"},
    {"exp", [](float x, float, float) { return std::exp(x); }, "exp(x)"},
    {"floor", [](float x, float, float) { return std::floor(x); }, "floor(x)"},
    {"gelu_erf", [](float x, float, float) { return 0.5f * x * (1 + std::erf(x * 0.70710678f)); },
     "0.5f * x * (1.0f + gate_erf(x * 0.70710678f))"},
    {"gelu_tanh",
     [](float x, float, float) {
       return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
     },
     "0.5f * x * (1.0f + gate_tanh(0.79788456f * (x + 0.044715f * x * x * x)))"},
    {"hard_sigmoid",
     [](float x, float a, float b) { return std::min(std::max(a * x + b, 0.f), 1.f); },
     "at_most(at_least(ALPHA * x + BETA, 0.0f), 1.0f)"},
    {"hsigmoid", [](float x, float, float) { return std::min(std::max(x + 3, 0.f), 6.f) / 6; },
     "at_most(at_least(x + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f)"},
    {"hswish", [](float x, float, float) { return x * std::min(std::max(x + 3, 0.f), 6.f) / 6; },
     "x * fmin(fmax(x + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f)"},
    // alpha * x + beta
    {"linear", [](float x, float a, float b) { return a * x + b; }, "ALPHA * x + BETA"},
    {"log", [](float x, float, float) { return std::log(x); }, "log(x)"},
    {"mish",
     [](float x, float, float) { return x * std::tanh(std::log1p(std::exp(std::min(x, 30.f)))); },
     // tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2)
     "x * (exp(fmin(x, 20.0f)) * (exp(fmin(x, 20.0f)) + 2.0f)) / "
     "(exp(fmin(x, 20.0f)) * (exp(fmin(x, 20.0f)) + 2.0f) + 2.0f)"},
    {"negative", [](float x, float, float) { return -x; }, "-x"},
    {"relu", [](float x, float, float) { return std::max(x, 0.f); }, "at_least(x, 0.0f)"},
    {"round_even", [](float x, float, float) { return std::nearbyint(x); }, "rint(x)"},
    {"round_away", [](float x, float, float) { return std::round(x); }, "round(x)"},
    // beta * (x > 0 ? x : alpha * (exp(x) - 1))
    {"selu", [](float x, float a, float b) { return b * (x > 0 ? x : a * std::expm1(x)); },
     "BETA * (at_least(x, 0.0f) + ALPHA * gate_expm1(at_most(x, 0.0f)))"},
    {"sigmoid", [](float x, float, float) { return 1 / (1 + std::exp(-x)); },
     "gate_quotient(1.0f, 1.0f + gate_exp(-x))"},
    {"sign",
     [](float x, float, float) {
       return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0));
     },
     "x != x ? x : sign(x)"},
    {"sin", [](float x, float, float) { return std::sin(x); }, "sin(x)"},
    {"sinh", [](float x, float, float) { return std::sinh(x); }, "sinh(x)"},
    {"soft_plus",
     [](float x, float, float) { return std::max(x, 0.f) + std::log1p(std::exp(-std::fabs(x))); },
     "fmax(x, 0.0f) + log1p(exp(-fabs(x)))"},
    {"soft_sign", [](float x, float, float) { return x / (1 + std::fabs(x)); },
     "x / (1.0f + fabs(x))"},
    {"sqrt", [](float x, float, float) { return std::sqrt(x); }, "sqrt(x)"},
    // x * sigmoid(alpha * x)
    {"swish", [](float x, float a, float) { return x / (1 + std::exp(-a * x)); },
     "gate_quotient(x, 1.0f + gate_exp(-ALPHA * x))"},
    // swish of what is rounded to levels afterwards: NVIDIA's GPUs have few units for such functions, and
    // this takes one of their instructions instead of two
    {"swish_of_levels", [](float x, float a, float) { return x / (1 + std::exp(-a * x)); },
     "fma(x * 0.5f, coarse_tanh(x * (0.5f * ALPHA)), x * 0.5f)"},
    {"square", [](float x, float, float) { return x * x; }, "x * x"},
    // the nearest integer in alpha..beta (below 2^22) minus alpha, as bytes are stored
    {"to_byte",
     [](float x, float a, float b) { return std::isnan(x) ? 0 : nearest_level(x, a, b) - a; },
     "round_even(fmin(fmax(x, ALPHA), BETA)) - ALPHA"},
    // the nearest integer in alpha..beta, as a float
    {"to_level", nearest_level, "round_even(at_most(at_least(x, ALPHA), BETA))"},
    {"tan", [](float x, float, float) { return std::tan(x); }, "tan(x)"},
    // the nearest float of 8 bits; beta with the sign of x where that is larger than alpha
    {"to_f8e4m3", [](float x, float, float b) { return rounded_to_float8(x, kFloat8E4M3, b); },
     "fabs(to_float8(x, 3, -9)) > ALPHA ? BETA * sign(x) : to_float8(x, 3, -9)"},
    {"to_f8e5m2", [](float x, float, float b) { return rounded_to_float8(x, kFloat8E5M2, b); },
     "fabs(to_float8(x, 2, -16)) > ALPHA ? BETA * sign(x) : to_float8(x, 2, -16)"},
    // to_f8e4m3 whose beta is alpha, for GPUs with instructions for it
    {"nearest_f8e4m3", nearest_f8e4m3, "nearest_e4m3(x)"},
    // what becomes a stored f8e4m3; storing rounds and limits it
    {"store_f8e4m3", nearest_f8e4m3, "x"},
    {"tanh", [](float x, float, float) { return std::tanh(x); }, "gate_tanh(x)"},
};

constexpr BinaryFunction kBinary[] = {
    {"add", [](float x, float y) { return x + y; }, "x + y"},
    {"subtract", [](float x, float y) { return x - y; }, "x - y"},
    {"multiply", [](float x, float y) { return x * y; }, "x * y"},
    {"divide", [](float x, float y) { return x / y; }, "x / y"},
    {"maximum", [](float x, float y) { return x < y || std::isnan(y) ? y : x; }, "larger(x, y)"},
    {"minimum", [](float x, float y) { return x > y || std::isnan(y) ? y : x; }, "smaller(x, y)"},
    {"power", [](float x, float y) { return std::pow(x, y); }, "pow(x, y)"},
    {"prelu", [](float x, float y) { return x > 0 ? x : x * y; }, "x < 0.0f ? x * y : x"},
    {"squared_difference", [](float x, float y) { return (x - y) * (x - y); }, "(x - y) * (x - y)"},
    {"floor_mod", [](float x, float y) { return x - y * std::floor(x / y); },
     "x - y * floor(x / y)"},
    // x * sigmoid(y * x)
    {"swish_by", [](float x, float y) { return x / (1 + std::exp(-y * x)); },
     "gate_quotient(x, 1.0f + gate_exp(-y * x))"},
    {"mod", [](float x, float y) { return std::fmod(x, y); }, "fmod(x, y)"},
};

template <typename Function, size_t N>
const Function* find_in(const Function (&table)[N], std::string_view name) {
  for (const Function& function : table)
    if (function.name == name) return &function;
  return nullptr;
}

}  // namespace

const UnaryFunction* find_unary(std::string_view name) { return find_in(kUnary, name); }
const BinaryFunction* find_binary(std::string_view name) { return find_in(kBinary, name); }

std::string exact_text(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char text[32];
  std::snprintf(text, sizeof text, "as_float(0x%08xu)", bits);
  return text;
}

std::string with_parameters(std::string_view expression, float alpha, float beta) {
  std::string text(expression);
  for (const auto& [name, value] : {std::pair{"ALPHA", alpha}, std::pair{"BETA", beta}})
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, std::strlen(name), exact_text(value));
  return text;
}

}  // namespace clinfer
