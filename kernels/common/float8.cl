// Loads and stores values of e4m3, floats of 8 bits: a sign, 4 bits of exponent and 3 of mantissa, with
// one NaN for each sign and no infinity. Storing rounds to the nearest value, halves to the even one,
// and limits to the largest value, 448.
typedef uchar e4m3;

#ifdef __NV_CL_C_VERSION
// Only GPUs of compute capability 9.0 get such values; they have instructions for two of them.
inline float2 floats_of_e4m3(ushort pair) {
  float2 v;
  asm("{ .reg .b32 halves; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 halves, %2; "
      "mov.b32 {low, high}, halves; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(v.x), "=f"(v.y)
      : "h"(pair));
  return v;
}
inline float float_of_e4m3(uchar bits) { return floats_of_e4m3(bits).x; }
inline ushort e4m3_of_floats(float2 v) {
  ushort pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(v.y), "f"(v.x));
  return pair;
}
inline float4 floats_of_4_e4m3(uint bits) {
  return (float4)(floats_of_e4m3((ushort)bits), floats_of_e4m3((ushort)(bits >> 16)));
}
inline uint e4m3_of_4_floats(float4 v) {
  return (uint)e4m3_of_floats(v.lo) | (uint)e4m3_of_floats(v.hi) << 16;
}
inline float load_e4m3_1(__global const e4m3* p) { return float_of_e4m3(*p); }
inline float2 load_e4m3_2(__global const e4m3* p) { return floats_of_e4m3(as_ushort(load2(p))); }
inline float4 load_e4m3_4(__global const e4m3* p) { return floats_of_4_e4m3(as_uint(load4(p))); }
inline float4 load_aligned_e4m3_4(__global const e4m3* p) {
  return floats_of_4_e4m3(*(__global const uint*)p);
}
inline void store_e4m3_1(float v, __global e4m3* p) {
  *p = (e4m3)e4m3_of_floats((float2)(v, 0.0f));
}
inline void store_e4m3_2(float2 v, __global e4m3* p) { store2(as_uchar2(e4m3_of_floats(v)), p); }
inline void store_e4m3_4(float4 v, __global e4m3* p) { store4(as_uchar4(e4m3_of_4_floats(v)), p); }
inline void store_aligned_e4m3_4(float4 v, __global e4m3* p) {
  *(__global uint*)p = e4m3_of_4_floats(v);
}
inline float8 load_aligned_e4m3_8(__global const e4m3* p) {
  const uint2 bits = *(__global const uint2*)p;
  return (float8)(floats_of_4_e4m3(bits.x), floats_of_4_e4m3(bits.y));
}
inline void store_aligned_e4m3_8(float8 v, __global e4m3* p) {
  *(__global uint2*)p = (uint2)(e4m3_of_4_floats(v.lo), e4m3_of_4_floats(v.hi));
}
#else
// Moves the bits by 20 places, where they are those of a float whose exponent is 120 too small. A number
// without an implied one is given one, whose value is subtracted again.
#define DEFINE_E4M3(V, FV, UV, CV)                                                        \
  inline FV __attribute__((overloadable)) float_of_e4m3(CV bytes) {                       \
    const UV bits = convert_##UV(bytes), size = (bits & 0x7fu) << 20u;                    \
    const FV small = as_##FV(size + (121u << 23)) - 0x1p-6f;                              \
    const FV large = as_##FV(size + (120u << 23));                                        \
    const FV v = select(large, small, size < (1u << 23));                                 \
    const FV number = as_##FV(as_##UV(v) | (bits & 0x80u) << 24u);                        \
    return select(number, (FV)(NAN), (bits & 0x7fu) == 0x7fu);                            \
  }                                                                                       \
  inline FV load_e4m3_##V(__global const e4m3* p) { return float_of_e4m3(BYTES_##V(p)); } \
  inline void store_e4m3_##V(FV v, __global e4m3* p) {                                    \
    const FV size = fmin(fabs(v), 448.0f);                                                \
    const UV large = (as_##UV(size) + 0x7ffffu + ((as_##UV(size) >> 20u) & 1u)) >> 20u;   \
    const UV small = convert_##UV(rint(size * 512.0f));                                   \
    const UV number = select(large - (120u << 3), small, size < 0x1p-6f);                 \
    const UV made = select(number, (UV)(0x7fu), v != v) | ((as_##UV(v) >> 24u) & 0x80u);  \
    SET_BYTES_##V(convert_##CV(made), p);                                                 \
  }
#define BYTES_1(p) (*(p))
#define BYTES_2(p) load2(p)
#define BYTES_4(p) load4(p)
#define SET_BYTES_1(v, p) *(p) = (v)
#define SET_BYTES_2(v, p) store2(v, p)
#define SET_BYTES_4(v, p) store4(v, p)
DEFINE_E4M3(1, float, uint, uchar)
DEFINE_E4M3(2, float2, uint2, uchar2)
DEFINE_E4M3(4, float4, uint4, uchar4)
#define load_aligned_e4m3_4(p) load_e4m3_4(p)
#define store_aligned_e4m3_4(v, p) store_e4m3_4(v, p)
#define load_aligned_e4m3_8(p) load_e4m3_8(p)
#define store_aligned_e4m3_8(v, p) store_e4m3_8(v, p)
#endif
inline float8 load_e4m3_8(__global const e4m3* p) {
  return (float8)(load_e4m3_4(p), load_e4m3_4(p + 4));
}
inline void store_e4m3_8(float8 v, __global e4m3* p) {
  store_e4m3_4(v.lo, p);
  store_e4m3_4(v.hi, p + 4);
}
inline float16 load_e4m3_16(__global const e4m3* p) {
  return (float16)(load_e4m3_8(p), load_e4m3_8(p + 8));
}
inline void store_e4m3_16(float16 v, __global e4m3* p) {
  store_e4m3_8(v.lo, p);
  store_e4m3_8(v.hi, p + 8);
}
#define LOAD_e4m3_1(p) load_e4m3_1(p)
#define LOAD_e4m3_2(p) load_e4m3_2(p)
#define LOAD_e4m3_4(p) load_e4m3_4(p)
#define LOAD_e4m3_8(p) load_e4m3_8(p)
#define LOAD_e4m3_16(p) load_e4m3_16(p)
#define STORE_e4m3_1(v, p) store_e4m3_1(v, p)
#define STORE_e4m3_2(v, p) store_e4m3_2(v, p)
#define STORE_e4m3_4(v, p) store_e4m3_4(v, p)
#define STORE_e4m3_8(v, p) store_e4m3_8(v, p)
#define STORE_e4m3_16(v, p) store_e4m3_16(v, p)
#define LOAD_ALIGNED_e4m3_1(p) load_e4m3_1(p)
#define LOAD_ALIGNED_e4m3_2(p) load_e4m3_2(p)
#define LOAD_ALIGNED_e4m3_4(p) load_aligned_e4m3_4(p)
#define LOAD_ALIGNED_e4m3_8(p) load_aligned_e4m3_8(p)
#define LOAD_ALIGNED_e4m3_16(p) load_e4m3_16(p)
#define STORE_ALIGNED_e4m3_1(v, p) store_e4m3_1(v, p)
#define STORE_ALIGNED_e4m3_2(v, p) store_e4m3_2(v, p)
#define STORE_ALIGNED_e4m3_4(v, p) store_aligned_e4m3_4(v, p)
#define STORE_ALIGNED_e4m3_8(v, p) store_aligned_e4m3_8(v, p)
#define STORE_ALIGNED_e4m3_16(v, p) store_e4m3_16(v, p)
