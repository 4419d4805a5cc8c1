// Products of matrices by the matrix instructions (dpas) of Intel's GPUs: one multiplies the blocks
// x0, x1, ... of up to eight pixels by the weights of a vector of channels. Included by a kernel by
// sub-groups, which says what it defines (MATRIX, STAND_IN, LANES, TILE_P, VECTORS, BYTES).
// Sub-groups of eight lanes (DG2, Meteor Lake, Arrow Lake) have words of the blocks, those of sixteen
// (Ponte Vecchio and from Lunar Lake on) halves of words.

#if TILE_P < 8
#define PIXELS TILE_P  // of an instruction
#else
#define PIXELS 8
#endif
#if TILE_P == 16
#define PRODUCTS 2  // instructions for a vector of channels
#else
#define PRODUCTS 1
#endif
#define PIXELS_OF(type) CAT(type, PIXELS)
#define uint1 uint
#define ushort1 ushort
#define short1 short

#if BYTES
#define OPERAND PIXELS_OF(ELEMENT)
#define AS_OPERAND(v) (v)
#define MAD intel_sub_group_u8_i8_matrix_mad_k32
#else
#if LANES == 8
#define OPERAND PIXELS_OF(int)
#define AS_OPERAND(v) CAT(as_int, PIXELS)(v)
#else
#define OPERAND PIXELS_OF(short)
#define AS_OPERAND(v) CAT(as_short, PIXELS)(v)
#endif
#define as_int1 as_int
#define as_short1 as_short
#define MAD intel_sub_group_f16_f16_matrix_mad_k16
#endif
#define SUMS_OF_PIXELS PIXELS_OF(SUM)

#if STAND_IN
inline SUM FN(word)(uint x, int w) {
#if BYTES
  const int4 a = convert_int4(as_uchar4(x)), b = convert_int4(as_char4(w));
  return a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3;
#else
  const float2 a = vload_half2(0, (const half*)&x), b = vload_half2(0, (const half*)&w);
  return a.s0 * b.s0 + a.s1 * b.s1;
#endif
}
inline SUMS_OF_PIXELS FN(multiply)(OPERAND x, int8 w, SUMS_OF_PIXELS sums) {
  ELEMENT own[PIXELS];
  int columns[8];
  SUM results[PIXELS];
  *(OPERAND*)own = x;
  *(int8*)columns = w;
  *(SUMS_OF_PIXELS*)results = sums;
  for (int p = 0; p < PIXELS; ++p)
    for (int i = 0; i < 8; ++i) {
#if LANES == 8
      const uint word = intel_sub_group_shuffle(own[p], i);
#else
      const uint word = intel_sub_group_shuffle((uint)own[p], 2 * i) |
                        intel_sub_group_shuffle((uint)own[p], 2 * i + 1) << 16;
#endif
      results[p] += FN(word)(word, columns[i]);
    }
  return *(SUMS_OF_PIXELS*)results;
}
#define MULTIPLY(x, w, sums) FN(multiply)(AS_OPERAND(x), w, sums)
#else
#ifndef cl_intel_subgroup_matrix_multiply_accumulate  // an older compiler does not declare it
__attribute__((overloadable)) SUMS_OF_PIXELS MAD(OPERAND, int8, SUMS_OF_PIXELS);
#endif
#define MULTIPLY(x, w, sums) MAD(AS_OPERAND(x), w, sums)
#endif

#if BLOCKS_2D
// Pixels as rows: so many bytes of so many rows, whose starts are `pitch` bytes apart.
typedef struct {
  __global const void* base;
  int bytes, rows, pitch;
} FN(Surface);
#define SURFACE(first, count) \
  { first, a.in_channels*(int)sizeof(IN_T), count, a.in_w*(int)sizeof(IN_T) }
#if OLDER_2D && !STAND_IN && !defined(cl_intel_subgroup_extended_block_read)
// An older compiler does not declare it.
ushort16 intel_subgroup_block_read_u16_m8k16v2(__global void*, int, int, int, int2);
#endif
// Two blocks of each of eight rows, from element i of row `top` on; zeros outside the surface.
inline ushort16 FN(read_rows)(const FN(Surface) s, int i, int top) {
#if STAND_IN
  // Where the instruction would not take the surface, the sums become wrong.
  const bool valid = (ulong)s.base % 64 == 0 && s.bytes >= 64 && s.bytes % 4 == 0 &&
                     s.pitch >= s.bytes && s.pitch % 16 == 0 && i % 2 == 0;
  ushort values[16];
  for (int v = 0; v < 16; ++v) {
    const int column = i + v / 8 * LANES + (int)get_sub_group_local_id(), row = top + v % 8;
    const bool inside = 2 * column < s.bytes && row >= 0 && row < s.rows;
    values[v] = !valid   ? 0x7777
                : inside ? ((__global const ushort*)s.base)[row * (s.pitch / 2) + column]
                         : 0;
  }
  return vload16(0, values);
#elif OLDER_2D
  return intel_subgroup_block_read_u16_m8k16v2((__global void*)s.base, s.bytes, s.rows, s.pitch,
                                               (int2)(i, top));
#else
  ushort values[16];
  intel_sub_group_2d_block_read_16b_8r16x2c((__global void*)s.base, s.bytes, s.rows, s.pitch,
                                            (int2)(i, top), values);
  return vload16(0, values);
#endif
}
#endif

// The blocks of the pixels of instruction number g.
#if BLOCKS_2D
#define BLOCKS_OF_0 x0
#define BLOCKS_OF_1 x1
#elif PIXELS == 1
#define BLOCKS_OF_0 x0
#elif PIXELS == 2
#define BLOCKS_OF_0 (PIXELS_OF(ELEMENT))(x0, x1)
#elif PIXELS == 4
#define BLOCKS_OF_0 (PIXELS_OF(ELEMENT))(x0, x1, x2, x3)
#else
#define BLOCKS_OF_0 (PIXELS_OF(ELEMENT))(x0, x1, x2, x3, x4, x5, x6, x7)
#define BLOCKS_OF_1 (PIXELS_OF(ELEMENT))(x8, x9, x10, x11, x12, x13, x14, x15)
#endif

// A step: one block of each pixel, LOAD(p), by the weights of each vector.
#define MULTIPLY_BLOCKS(k, g) products[g][k] = MULTIPLY(BLOCKS_OF_##g, row, products[g][k]);
#define MULTIPLY_VECTOR(k)                                          \
  {                                                                 \
    const int8 row = READ(8, W_T, AT(weights) + w + k * 8 * LANES); \
    REPEAT_WITH(PRODUCTS, k, MULTIPLY_BLOCKS)                       \
  }
#define STEP(LOAD, n)                \
  {                                  \
    REPEAT(LOADS, LOAD)              \
    REPEAT(VECTORS, MULTIPLY_VECTOR) \
    w += 8 * BLOCK;                  \
  }
#define WEIGHTS(n) ((n) * (8 * BLOCK / LANES))
#define WEIGHTS_OF_LANE 0

// The sums, which become one for each pixel and vector in the end.
#define BEGIN_(k, g) products[g][k] = START(k);
#define BEGIN(k) REPEAT_WITH(PRODUCTS, k, BEGIN_)
#define BEGIN_PRODUCTS                        \
  SUMS_OF_PIXELS products[PRODUCTS][VECTORS]; \
  REPEAT(VECTORS, BEGIN)
#define END_(p, k) SUM acc##p##_##k = ((const SUM*)&products[p / PIXELS][k])[p % PIXELS];
#define END(p) REPEAT_WITH(VECTORS, p, END_)
