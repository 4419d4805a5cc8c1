// Return the larger (smaller) of x and a limit. They keep NaN, which fmax() and fmin() would drop.
// For float and floatN, with limits of the same type or float.
#define at_least(x, low) ((x) < (low) ? (low) : (x))
#define at_most(x, high) ((x) > (high) ? (high) : (x))
// Return the larger (smaller) of two numbers of one type; NaN if one of them is NaN.
#define larger(x, y) (((x) < (y)) | ((y) != (y)) ? (y) : (x))
#define smaller(x, y) (((x) > (y)) | ((y) != (y)) ? (y) : (x))

// Rounds |x| < 2^22 to the nearest integer, ties to even. PoCL's rint() is a dozen instructions,
// and NVIDIA's GPUs have few units for it.
#if defined(ON_CPU) || defined(__NV_CL_C_VERSION)
#define round_even(x) (((x) + 12582912.0f) - 12582912.0f)
#else
#define round_even(x) rint(x)
#endif

// Rounds to a float with `bits` bits behind the point, and to multiples of 2^least. `unit`, the last
// bit's value, comes from the exponent of x; it is limited so that the inverse exists.
#define DEFINE_TO_FLOAT8(F, I)                                                                 \
  inline F __attribute__((overloadable)) to_float8(F x, int bits, int least) {                 \
    const I unit = clamp((as_##I(x) & 0x7f800000) - (I)(bits << 23), (I)((127 + least) << 23), \
                         (I)((127 + 64) << 23));                                               \
    return round_even(x * as_##F((I)(254 << 23) - unit)) * as_##F(unit);                       \
  }
DEFINE_TO_FLOAT8(float, int)
DEFINE_TO_FLOAT8(float2, int2)
DEFINE_TO_FLOAT8(float4, int4)
DEFINE_TO_FLOAT8(float8, int8)
DEFINE_TO_FLOAT8(float16, int16)
// Rounds to the nearest number of e4m3, at most 448. GPUs of compute capability 9.0 have instructions
// for two numbers.
#ifdef __NV_CL_C_VERSION
inline float2 __attribute__((overloadable)) nearest_e4m3(float2 x) {
  return floats_of_e4m3(e4m3_of_floats(x));
}
inline float __attribute__((overloadable)) nearest_e4m3(float x) {
  return nearest_e4m3((float2)(x, 0.0f)).x;
}
inline float4 __attribute__((overloadable)) nearest_e4m3(float4 x) {
  return (float4)(nearest_e4m3(x.lo), nearest_e4m3(x.hi));
}
inline float8 __attribute__((overloadable)) nearest_e4m3(float8 x) {
  return (float8)(nearest_e4m3(x.lo), nearest_e4m3(x.hi));
}
#else
#define nearest_e4m3(x) at_most(at_least(to_float8(x, 3, -9), -448.0f), 448.0f)
#endif

// Limits a number to 0 .. 1, which NVIDIA's GPUs do in the instruction that computes it.
#ifdef __NV_CL_C_VERSION
// Defines functions of vectors by those of their halves, since inline PTX takes numbers.
#define BY_HALVES(f, F) \
  inline F __attribute__((overloadable)) f(F x) { return (F)(f(x.lo), f(x.hi)); }
#define OF_VECTORS(f)  \
  BY_HALVES(f, float2) \
  BY_HALVES(f, float4) \
  BY_HALVES(f, float8) \
  BY_HALVES(f, float16)

inline float __attribute__((overloadable)) saturated(float x) {
  float y;
  asm("cvt.sat.f32.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
OF_VECTORS(saturated)
#else
#define saturated(x) fmin(fmax(x, 0.0f), 1.0f)
#endif

// For gates (sigmoid, swish): exp(x), saturated for |x| > 87 (but on NVIDIA's GPUs), exp(x) - 1 for
// x <= 0, tanh(x), erf(x), and x / y for 1 <= y < 2^126. For weights (softmax): exp(x) for x <= 0,
// on CPUs 0 where that is smaller than the smallest normal number, since processors take a hundred
// times as long for products of smaller ones. On CPUs, and with ORDERED_SUMS, they are exact to 2
// units in the last place, where native_exp() may be off by 1e-4 (Intel's), and the same to the bit
// by each driver; on GPUs they are as accurate as their instructions.
#if defined(ON_CPU) || defined(ORDERED_SUMS)
#ifdef GATES  // Left out of other kernels, because a compiler needs 12 ms to read them.
// Uses exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, with ln 2 in two parts. exp(r)
// - 1 is a polynomial of degree 7 from Cephes (expf). PoCL's own exp handles every special case and
// takes about twice as long. erf(x) / x is a quotient of polynomials of x * x with a relative error
// of 6e-8 (erf(3.92) rounds to 1); PoCL's own erf and tanh are loops over the elements.
#define DEFINE_GATE_EXP(F, I)                                           \
  inline F __attribute__((overloadable)) split_exp(F x, F* power) {     \
    x = at_most(at_least(x, (F)-87.0f), (F)87.0f);                      \
    const F n = round_even(x * 1.44269504f);                            \
    *power = as_##F((convert_##I(n) + 127) << 23);                      \
    const F r = fma(n, (F)2.12194440e-4f, fma(n, (F)-0.693359375f, x)); \
    F y = fma((F)1.9875691500e-4f, r, (F)1.3981999507e-3f);             \
    y = fma(y, r, (F)8.3334519073e-3f);                                 \
    y = fma(y, r, (F)4.1665795894e-2f);                                 \
    y = fma(y, r, (F)1.6666665459e-1f);                                 \
    y = fma(y, r, (F)5.0000001201e-1f);                                 \
    return fma(y, r * r, r);                                            \
  }                                                                     \
  inline F __attribute__((overloadable)) gate_exp(F x) {                \
    F power;                                                            \
    const F y = split_exp(x, &power);                                   \
    return fma(y, power, power);                                        \
  }                                                                     \
  inline F __attribute__((overloadable)) gate_weight(F x) {             \
    return select(gate_exp(x), (F)0.0f, x < (F)-87.0f);                 \
  }                                                                     \
  inline F __attribute__((overloadable)) gate_expm1(F x) {              \
    F power;                                                            \
    const F y = split_exp(x, &power);                                   \
    return fma(y, power, power - 1.0f);                                 \
  }                                                                     \
  inline F __attribute__((overloadable)) gate_tanh(F x) {               \
    const F y = gate_expm1(-2.0f * fabs(x));                            \
    return copysign(y / (y + 2.0f), x);                                 \
  }                                                                     \
  inline F __attribute__((overloadable)) gate_erf(F x) {                \
    x = at_most(at_least(x, (F)-3.92f), (F)3.92f);                      \
    const F s = x * x;                                                  \
    F above = fma((F)1.99242542e-8f, s, (F)-1.95783173e-6f);            \
    above = fma(above, s, (F)1.41849639e-4f);                           \
    above = fma(above, s, (F)3.7015772e-3f);                            \
    above = fma(above, s, (F)5.05732298e-2f);                           \
    above = fma(above, s, (F)1.99923769e-1f);                           \
    above = fma(above, s, (F)1.12837911f);                              \
    F below = fma((F)9.56031028e-4f, s, (F)1.43531393e-2f);             \
    below = fma(below, s, (F)1.14998102e-1f);                           \
    below = fma(below, s, (F)5.10509491e-1f);                           \
    below = fma(below, s, (F)1.0f);                                     \
    x *= above / below;                                                 \
    return at_most(at_least(x, (F)-1.0f), (F)1.0f);                     \
  }
DEFINE_GATE_EXP(float, int)
DEFINE_GATE_EXP(float2, int2)
DEFINE_GATE_EXP(float4, int4)
DEFINE_GATE_EXP(float8, int8)
DEFINE_GATE_EXP(float16, int16)
#define gate_quotient(x, y) ((x) / (y))
#endif
#else
#ifdef __NV_CL_C_VERSION
// Instructions that take numbers near 0 for 0: native_exp() and native_recip() spend five to seven
// instructions more on these and on limits. Here exp(x) may be 0 or infinite, and the quotient by
// 1 + exp(x) is then x or 0.
inline float __attribute__((overloadable)) gate_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}
inline float __attribute__((overloadable)) gate_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
OF_VECTORS(gate_exp)
OF_VECTORS(gate_reciprocal)
#define gate_quotient(x, y) ((x)*gate_reciprocal(y))
// Returns tanh(x), which is off by up to 0.0005. Devices with matrix instructions of bytes have it.
inline float __attribute__((overloadable)) coarse_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
OF_VECTORS(coarse_tanh)
#else
#define coarse_tanh(x) tanh(x)
#define gate_exp(x) native_exp(at_most(at_least(x, -87.0f), 87.0f))
#define gate_quotient(x, y) ((x)*native_recip(y))
#endif
#define gate_weight(x) exp(x)
#define gate_expm1(x) expm1(x)
#define gate_tanh(x) tanh(x)
#define gate_erf(x) erf(x)
#endif
