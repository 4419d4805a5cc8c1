// Storage and compute types, and the macros by which kernels name their tensors. Included once at
// the top of every program.
// T is the storage type of activations (float or half); all arithmetic is in float.
// ORDERED_SUMS: each operation rounds as it is written, so that all devices round alike.
#ifdef ORDERED_SUMS
#pragma OPENCL FP_CONTRACT OFF
#else
#pragma OPENCL FP_CONTRACT ON
#endif
#ifdef USE_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Where fma() is a function of many instructions, kernels round twice, except in fused().
#ifdef NO_FMA
static inline float fused(float a, float b, float c) { return fma(a, b, c); }
#define fma(a, b, c) ((a) * (b) + (c))
#else
#define fused fma
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
// Names a function of this instantiation: FN(load) -> load_<KERNEL_NAME>, so that several
// instantiations can be in one program.
#define FN(name) CAT(CAT(name, _), KERNEL_NAME)

// A kernel is written as WORK_GROUP(x, y, z), then on a line of its own KERNEL(parameters) { body
// }, with at most one SHARED array of local memory in use at a time. persistent.cl makes a function
// of the same text.
#ifdef SUB_GROUP
#define WORK_GROUP(x, y, z) \
  __attribute__((reqd_work_group_size(x, y, z), intel_reqd_sub_group_size(SUB_GROUP)))
#else
#define WORK_GROUP(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
#endif
#define KERNEL __kernel void KERNEL_NAME
#define SHARED(type, name, count) __local type name[count]
#define RESTRICT restrict
// A tensor argument is a base buffer and an element offset (see Argument in kernel.h); AT is the
// address of the tensor's first element.
#define IN(type, name) __global const type *RESTRICT name##_base, const int name##_offset
#define OUT(type, name) __global type *RESTRICT name##_base, const int name##_offset
#define AT(name) (name##_base + name##_offset)
// Returns n / a.size for kernel arguments `a` that contain size_scale and size_shift (quotient_by()
// in shape_util.h).
#define QUOTIENT(n, size) (int)((ulong)(uint)(n)*a.size##_scale >> a.size##_shift)

#define float1 float
#define int1 int
#define FLOATV(V) CAT(float, V)
#define INTV(V) CAT(int, V)
#define convert_float1(x) convert_float(x)

// Load and store vectors at any element alignment. PoCL's own functions move two floats at a time,
// and bytes one by one.
#ifdef POCL_DEVICE_ADDRESS_BITS
#define DEFINE_MOVES_IN(SPACE, T, V)                                              \
  static inline T##V __attribute__((overloadable)) load##V(SPACE const T* p) {    \
    return ((SPACE const packed_##T##V*)p)->v;                                    \
  }                                                                               \
  static inline void __attribute__((overloadable)) store##V(T##V v, SPACE T* p) { \
    ((SPACE packed_##T##V*)p)->v = v;                                             \
  }
#define DEFINE_MOVES(T, V)                 \
  typedef struct __attribute__((packed)) { \
    T##V v;                                \
  } packed_##T##V;                         \
  DEFINE_MOVES_IN(__global, T, V)          \
  DEFINE_MOVES_IN(__local, T, V)           \
  DEFINE_MOVES_IN(__private, T, V)
DEFINE_MOVES(float, 2)
DEFINE_MOVES(float, 4)
DEFINE_MOVES(float, 8)
DEFINE_MOVES(float, 16)
DEFINE_MOVES(uchar, 2)
DEFINE_MOVES(uchar, 4)
DEFINE_MOVES(uchar, 8)
DEFINE_MOVES(uchar, 16)
#else
#define load2(p) vload2(0, p)
#define load4(p) vload4(0, p)
#define load8(p) vload8(0, p)
#define load16(p) vload16(0, p)
#define store2(v, p) vstore2(v, 0, p)
#define store4(v, p) vstore4(v, 0, p)
#define store8(v, p) vstore8(v, 0, p)
#define store16(v, p) vstore16(v, 0, p)
#endif

// Load and store V elements of type float or half as floats, at any element alignment. There is one
// macro for each width, because some compilers define vload and vstore as macros, so that names
// cannot be pasted together.
#define LOAD_float_1(p) (*(p))
#define STORE_float_1(v, p) (*(p) = (v))
#define LOAD_float_2(p) load2(p)
#define STORE_float_2(v, p) store2(v, p)
#define LOAD_float_4(p) load4(p)
#define STORE_float_4(v, p) store4(v, p)
#define LOAD_float_8(p) load8(p)
#define STORE_float_8(v, p) store8(v, p)
#define LOAD_float_16(p) load16(p)
#define STORE_float_16(v, p) store16(v, p)
#define LOAD_half_1(p) vload_half(0, p)
#define STORE_half_1(v, p) vstore_half_rte(v, 0, p)
#define LOAD_half_2(p) vload_half2(0, p)
#define STORE_half_2(v, p) vstore_half2_rte(v, 0, p)
#define LOAD_half_4(p) vload_half4(0, p)
#define STORE_half_4(v, p) vstore_half4_rte(v, 0, p)
// Load and store quantised values; a value to store is already an integer from 0 to 255.
#define LOAD_uchar_1(p) convert_float(*(p))
#define STORE_uchar_1(v, p) (*(p) = convert_uchar(v))
#define LOAD_uchar_2(p) convert_float2(load2(p))
#define STORE_uchar_2(v, p) store2(convert_uchar2(v), p)
#define LOAD_uchar_4(p) convert_float4(load4(p))
#define STORE_uchar_4(v, p) store4(convert_uchar4(v), p)
#define LOAD_uchar_8(p) convert_float8(load8(p))
#define STORE_uchar_8(v, p) store8(convert_uchar8(v), p)
#define LOAD_uchar_16(p) convert_float16(load16(p))
#define STORE_uchar_16(v, p) store16(convert_uchar16(v), p)
// PoCL's wide half loads and stores fault at addresses that are only aligned to one element.
#ifdef POCL_DEVICE_ADDRESS_BITS
void store_half8(float8 v, __global half* p) {
  vstore_half4_rte(v.lo, 0, p);
  vstore_half4_rte(v.hi, 1, p);
}
void store_half16(float16 v, __global half* p) {
  store_half8(v.lo, p);
  store_half8(v.hi, p + 8);
}
#define LOAD_half_8(p) ((float8)(vload_half4(0, p), vload_half4(1, p)))
#define STORE_half_8(v, p) store_half8(v, p)
#define LOAD_half_16(p) \
  ((float16)(vload_half4(0, p), vload_half4(1, p), vload_half4(2, p), vload_half4(3, p)))
#define STORE_half_16(v, p) store_half16(v, p)
#else
#define LOAD_half_8(p) vload_half8(0, p)
#define STORE_half_8(v, p) vstore_half8_rte(v, 0, p)
#define LOAD_half_16(p) vload_half16(0, p)
#define STORE_half_16(v, p) vstore_half16_rte(v, 0, p)
#endif
#define LOADV(type, V, p) CAT(CAT(LOAD_, type), CAT(_, V))(p)
#define STOREV(type, V, v, p) CAT(CAT(STORE_, type), CAT(_, V))(v, p)
#define LOADV_PRIVATE(V, p) LOADV(float, V, p)
#define STOREV_PRIVATE(V, v, p) STOREV(float, V, v, p)

// Load and store vectors aligned to their own size, in one instruction. Some compilers split loads
// of halves at any alignment into single elements.
#define LOAD_ALIGNED_float_1(p) (*(p))
#define LOAD_ALIGNED_float_2(p) (*(__global const float2*)(p))
#define LOAD_ALIGNED_float_4(p) (*(__global const float4*)(p))
#define LOAD_ALIGNED_float_8(p) (*(__global const float8*)(p))
#define LOAD_ALIGNED_float_16(p) (*(__global const float16*)(p))
#define LOAD_ALIGNED_half_1(p) LOAD_half_1(p)
#define LOAD_ALIGNED_half_2(p) load_aligned_half2(p)
#define LOAD_ALIGNED_half_4(p) load_aligned_half4(p)
#define LOAD_ALIGNED_half_8(p) load_aligned_half8(p)
#define LOAD_ALIGNED_half_16(p) load_aligned_half16(p)
inline float2 load_aligned_half2(__global const half* p) {
  const uint bits = *(__global const uint*)p;
  return vload_half2(0, (const half*)&bits);
}
inline float4 load_aligned_half4(__global const half* p) {
  const uint2 bits = *(__global const uint2*)p;
  return vload_half4(0, (const half*)&bits);
}
inline float8 load_aligned_half8(__global const half* p) {
  const uint4 bits = *(__global const uint4*)p;
  return vload_half8(0, (const half*)&bits);
}
inline float16 load_aligned_half16(__global const half* p) {
  return (float16)(load_aligned_half8(p), load_aligned_half8(p + 8));
}
#define LOAD_ALIGNED_uchar_1(p) LOAD_uchar_1(p)
#define LOAD_ALIGNED_uchar_2(p) convert_float2(*(__global const uchar2*)(p))
#ifdef __NV_CL_C_VERSION
// Converts bytes by permuting bytes and adding floats, which NVIDIA's GPUs do at eight times the
// rate of converting integers: the float 2^23 + byte has the bits of 2^23 with the byte as the
// lowest one.
#define TWO_TO_23 8388608.0f
inline float4 floats_of_bytes(uint bytes) {
  uint4 bits;
  asm("prmt.b32 %0, %1, %2, 0x7440;" : "=r"(bits.x) : "r"(bytes), "r"(as_uint(TWO_TO_23)));
  asm("prmt.b32 %0, %1, %2, 0x7441;" : "=r"(bits.y) : "r"(bytes), "r"(as_uint(TWO_TO_23)));
  asm("prmt.b32 %0, %1, %2, 0x7442;" : "=r"(bits.z) : "r"(bytes), "r"(as_uint(TWO_TO_23)));
  asm("prmt.b32 %0, %1, %2, 0x7443;" : "=r"(bits.w) : "r"(bytes), "r"(as_uint(TWO_TO_23)));
  return as_float4(bits) - TWO_TO_23;
}
// Packs the lowest bytes.
inline uint low_bytes(uint4 bits) {
  uint low, high, bytes;
  asm("prmt.b32 %0, %1, %2, 0x0040;" : "=r"(low) : "r"(bits.x), "r"(bits.y));
  asm("prmt.b32 %0, %1, %2, 0x0040;" : "=r"(high) : "r"(bits.z), "r"(bits.w));
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(bytes) : "r"(low), "r"(high));
  return bytes;
}
// Packs four integers from 0 to 255 into bytes.
inline uint bytes_of_floats(float4 v) { return low_bytes(as_uint4(v + TWO_TO_23)); }
inline float8 load_aligned_uchar8(__global const uchar* p) {
  const uint2 bytes = *(__global const uint2*)p;
  return (float8)(floats_of_bytes(bytes.x), floats_of_bytes(bytes.y));
}
inline float16 load_aligned_uchar16(__global const uchar* p) {
  const uint4 bytes = *(__global const uint4*)p;
  return (float16)(floats_of_bytes(bytes.x), floats_of_bytes(bytes.y), floats_of_bytes(bytes.z),
                   floats_of_bytes(bytes.w));
}
inline void store_aligned_uchar8(float8 v, __global uchar* p) {
  *(__global uint2*)p = (uint2)(bytes_of_floats(v.lo), bytes_of_floats(v.hi));
}
inline void store_aligned_uchar16(float16 v, __global uchar* p) {
  *(__global uint4*)p = (uint4)(bytes_of_floats(v.s0123), bytes_of_floats(v.s4567),
                                bytes_of_floats(v.s89ab), bytes_of_floats(v.scdef));
}
#define LOAD_ALIGNED_uchar_4(p) floats_of_bytes(*(__global const uint*)(p))
#define LOAD_ALIGNED_uchar_8(p) load_aligned_uchar8(p)
#define LOAD_ALIGNED_uchar_16(p) load_aligned_uchar16(p)
#define STORE_ALIGNED_uchar_4(v, p) (*(__global uint*)(p) = bytes_of_floats(v))
#define STORE_ALIGNED_uchar_8(v, p) store_aligned_uchar8(v, p)
#define STORE_ALIGNED_uchar_16(v, p) store_aligned_uchar16(v, p)
#else
#define LOAD_ALIGNED_uchar_4(p) convert_float4(*(__global const uchar4*)(p))
#define LOAD_ALIGNED_uchar_8(p) convert_float8(*(__global const uchar8*)(p))
#define LOAD_ALIGNED_uchar_16(p) convert_float16(*(__global const uchar16*)(p))
#define STORE_ALIGNED_uchar_4(v, p) (*(__global uchar4*)(p) = convert_uchar4(v))
#define STORE_ALIGNED_uchar_8(v, p) (*(__global uchar8*)(p) = convert_uchar8(v))
#define STORE_ALIGNED_uchar_16(v, p) (*(__global uchar16*)(p) = convert_uchar16(v))
#endif
#define LOADV_ALIGNED(type, V, p) CAT(CAT(LOAD_ALIGNED_, type), CAT(_, V))(p)

#define STORE_ALIGNED_float_1(v, p) STORE_float_1(v, p)
#define STORE_ALIGNED_float_2(v, p) (*(__global float2*)(p) = (v))
#define STORE_ALIGNED_float_4(v, p) (*(__global float4*)(p) = (v))
#define STORE_ALIGNED_float_8(v, p) (*(__global float8*)(p) = (v))
#define STORE_ALIGNED_float_16(v, p) (*(__global float16*)(p) = (v))
#define STORE_ALIGNED_uchar_1(v, p) STORE_uchar_1(v, p)
#define STORE_ALIGNED_uchar_2(v, p) (*(__global uchar2*)(p) = convert_uchar2(v))
#define STORE_ALIGNED_half_1(v, p) STORE_half_1(v, p)
#define STORE_ALIGNED_half_2(v, p) store_aligned_half2(v, p)
#define STORE_ALIGNED_half_4(v, p) store_aligned_half4(v, p)
#define STORE_ALIGNED_half_8(v, p) store_aligned_half8(v, p)
#define STORE_ALIGNED_half_16(v, p) store_aligned_half16(v, p)
inline void store_aligned_half2(float2 v, __global half* p) {
  uint bits;
  vstore_half2_rte(v, 0, (half*)&bits);
  *(__global uint*)p = bits;
}
inline void store_aligned_half4(float4 v, __global half* p) {
  uint2 bits;
  vstore_half4_rte(v, 0, (half*)&bits);
  *(__global uint2*)p = bits;
}
inline void store_aligned_half8(float8 v, __global half* p) {
  uint4 bits;
  vstore_half4_rte(v.lo, 0, (half*)&bits);
  vstore_half4_rte(v.hi, 1, (half*)&bits);
  *(__global uint4*)p = bits;
}
inline void store_aligned_half16(float16 v, __global half* p) {
  store_aligned_half8(v.lo, p);
  store_aligned_half8(v.hi, p + 8);
}
// Store values from 0 to 255 that are not rounded yet as bytes (see add_stored_tail()): the last
// eight bits of 1.5 * 2^23 + v are the nearest integer, ties to even.
#define LEVELS(v, uints, uchars) uchars(uints((v) + 12582912.0f) & 255)
#define STORE_level_1(v, p) (*(p) = LEVELS(v, as_uint, convert_uchar))
#define STORE_level_2(v, p) store2(LEVELS(v, as_uint2, convert_uchar2), p)
#define STORE_level_4(v, p) store4(LEVELS(v, as_uint4, convert_uchar4), p)
#define STORE_level_8(v, p) store8(LEVELS(v, as_uint8, convert_uchar8), p)
#define STORE_level_16(v, p) store16(LEVELS(v, as_uint16, convert_uchar16), p)
#define STORE_ALIGNED_level_1(v, p) STORE_level_1(v, p)
#define STORE_ALIGNED_level_2(v, p) (*(__global uchar2*)(p) = LEVELS(v, as_uint2, convert_uchar2))
#ifdef __NV_CL_C_VERSION
inline uint bytes_of_levels(float4 v) { return low_bytes(as_uint4(v + 12582912.0f)); }
inline void store_aligned_level8(float8 v, __global uchar* p) {
  *(__global uint2*)p = (uint2)(bytes_of_levels(v.lo), bytes_of_levels(v.hi));
}
inline void store_aligned_level16(float16 v, __global uchar* p) {
  *(__global uint4*)p = (uint4)(bytes_of_levels(v.s0123), bytes_of_levels(v.s4567),
                                bytes_of_levels(v.s89ab), bytes_of_levels(v.scdef));
}
#define STORE_ALIGNED_level_4(v, p) (*(__global uint*)(p) = bytes_of_levels(v))
#define STORE_ALIGNED_level_8(v, p) store_aligned_level8(v, p)
#define STORE_ALIGNED_level_16(v, p) store_aligned_level16(v, p)
#else
#define STORE_ALIGNED_level_4(v, p) STORE_level_4(v, p)
#define STORE_ALIGNED_level_8(v, p) STORE_level_8(v, p)
#define STORE_ALIGNED_level_16(v, p) STORE_level_16(v, p)
#endif
// Store values of which 0 .. 1 stands for 0 .. HIGHEST, and others for the nearer of these.
#define LEVELS_OF_UNITS(v) (saturated(v) * HIGHEST)
#define STORE_unit_1(v, p) STORE_level_1(LEVELS_OF_UNITS(v), p)
#define STORE_unit_2(v, p) STORE_level_2(LEVELS_OF_UNITS(v), p)
#define STORE_unit_4(v, p) STORE_level_4(LEVELS_OF_UNITS(v), p)
#define STORE_unit_8(v, p) STORE_level_8(LEVELS_OF_UNITS(v), p)
#define STORE_unit_16(v, p) STORE_level_16(LEVELS_OF_UNITS(v), p)
#define STORE_ALIGNED_unit_1(v, p) STORE_ALIGNED_level_1(LEVELS_OF_UNITS(v), p)
#define STORE_ALIGNED_unit_2(v, p) STORE_ALIGNED_level_2(LEVELS_OF_UNITS(v), p)
#define STORE_ALIGNED_unit_4(v, p) STORE_ALIGNED_level_4(LEVELS_OF_UNITS(v), p)
#define STORE_ALIGNED_unit_8(v, p) STORE_ALIGNED_level_8(LEVELS_OF_UNITS(v), p)
#define STORE_ALIGNED_unit_16(v, p) STORE_ALIGNED_level_16(LEVELS_OF_UNITS(v), p)
#define STOREV_ALIGNED(type, V, v, p) CAT(CAT(STORE_ALIGNED_, type), CAT(_, V))(v, p)
#include "kernels/common/float8.cl"
