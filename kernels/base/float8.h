// The floats of 8 bits that models store and round to. The engine computes with their values in f32
// or f16, or multiplies values of e4m3 by matrix instructions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace clinfer {

struct Float8Format {
  std::string_view name;  // as in IR's element_type
  int mantissa = 0;       // bits
  int least = 0;          // the exponent of the smallest number above 0
  float most = 0;         // the largest number
  float beyond = 0;       // what larger numbers become unless they are limited to `most`
};

// e4m3 has one NaN for each sign and no infinity (ONNX: FLOAT8E4M3FN), e5m2 has both as IEEE 754.
inline constexpr Float8Format kFloat8E4M3{"f8e4m3", 3, -9, 448,
                                          std::numeric_limits<float>::quiet_NaN()};
inline constexpr Float8Format kFloat8E5M2{"f8e5m2", 2, -16, 57344,
                                          std::numeric_limits<float>::infinity()};

// Returns nullptr if `name` is none of the formats.
inline const Float8Format* find_float8(std::string_view name) {
  for (const Float8Format* format : {&kFloat8E4M3, &kFloat8E5M2})
    if (format->name == name) return format;
  return nullptr;
}

// Returns the value of stored bits.
inline float float8_value(uint8_t bits, const Float8Format& format) {
  const int fraction = bits & ((1 << format.mantissa) - 1),
            exponent = (bits & 0x7f) >> format.mantissa, implied = 1 << format.mantissa;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), format.least)
                              : std::ldexp(static_cast<float>(implied + fraction),
                                           format.least + exponent - 1);
  if (value > format.most)
    value = fraction == 0 ? format.beyond : std::numeric_limits<float>::quiet_NaN();
  return bits & 0x80 ? -value : value;
}

// Rounds to the nearest value of the format, halves to the even one; NaN stays NaN.
inline float rounded_to_float8(float x, const Float8Format& format, float beyond) {
  const bool has_exponent = std::isfinite(x) && x != 0;
  const int step = has_exponent ? std::max(std::ilogb(x) - format.mantissa, format.least) : 0;
  const float y = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return std::fabs(y) > format.most ? std::copysign(beyond, y) : y;
}

// Returns the nearest value of the format, which is the largest one for numbers beyond it.
inline float nearest_float8(float x, const Float8Format& format) {
  return rounded_to_float8(x, format, format.most);
}

// Returns the stored bits of the nearest value, which is the largest one for numbers beyond it.
inline uint8_t float8_bits(float x, const Float8Format& format) {
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
  const float y = std::fabs(nearest_float8(x, format));
  if (std::isnan(y)) return sign | 0x7f;
  if (y == 0) return sign;
  const int lowest = format.least + format.mantissa;  // exponent of numbers with an implied one
  const int exponent = std::max(std::ilogb(y), lowest);
  const auto fraction = static_cast<int>(std::ldexp(y, format.mantissa - exponent));
  return static_cast<uint8_t>(sign + ((exponent - lowest) << format.mantissa) + fraction);
}

}  // namespace clinfer
