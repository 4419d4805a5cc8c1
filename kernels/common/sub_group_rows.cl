// Multiplies by the matrix instruction of sub-groups of sixteen lanes. One instruction multiplies
// the blocks x0, x1, ... of up to eight pixels (its rows) by the weights of a vector of channels.
// Included by kernels by sub-groups, which define MATRIX, STAND_IN, LANES, TILE_P, VECTORS and
// BYTES.

#if TILE_P < 8
#define MATRIX_ROWS TILE_P
#else
#define MATRIX_ROWS 8
#endif
#if TILE_P == 16
#define PRODUCTS 2  // instructions needed for a vector of channels
#else
#define PRODUCTS 1
#endif
#define ushort1 ushort
#define short1 short
#define MATRIX_LANES LANES
#include "kernels/common/sub_group_matrix.cl"

#if BLOCKS_2D
// Describes pixels as rows: `rows` rows of `bytes` bytes, whose starts are `pitch` bytes apart.
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
// Reads two blocks of each of eight rows, from element i of row `top` on; zeros outside the
// surface.
inline ushort16 FN(read_rows)(const FN(Surface) s, int i, int top) {
#if STAND_IN
  // Makes wrong sums, which tests see, if the instruction would not accept the surface.
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

// Defines the blocks of pixels for instruction number g.
#if BLOCKS_2D
#define BLOCKS_OF_0 x0
#define BLOCKS_OF_1 x1
#elif MATRIX_ROWS == 1
#define BLOCKS_OF_0 x0
#elif MATRIX_ROWS == 2
#define BLOCKS_OF_0 (ushort2)(x0, x1)
#elif MATRIX_ROWS == 4
#define BLOCKS_OF_0 (ushort4)(x0, x1, x2, x3)
#else
#define BLOCKS_OF_0 (ushort8)(x0, x1, x2, x3, x4, x5, x6, x7)
#define BLOCKS_OF_1 (ushort8)(x8, x9, x10, x11, x12, x13, x14, x15)
#endif
#define AS_ROWS(v) CAT(as_, ROWS_T)(v)
#define as_short1 as_short
#define as_ushort1 as_ushort

// Does a step: multiplies one block of each pixel, LOAD(p), by the weights of each vector.
#define MULTIPLY_BLOCKS(k, g) \
  products[g][k] = MULTIPLY(AS_ROWS(BLOCKS_OF_##g), columns, products[g][k]);
#define MULTIPLY_VECTOR(k)                                              \
  {                                                                     \
    const int8 columns = READ(8, W_T, AT(weights) + w + k * 8 * LANES); \
    REPEAT_WITH(PRODUCTS, k, MULTIPLY_BLOCKS)                           \
  }
#define STEP(LOAD, n)                \
  {                                  \
    REPEAT(LOADS, LOAD)              \
    REPEAT(VECTORS, MULTIPLY_VECTOR) \
    w += 8 * BLOCK;                  \
  }
#define WEIGHTS(n) ((n) * (8 * BLOCK / LANES))
#define WEIGHTS_OF_LANE 0

// Defines the sums, which in the end become one for each pixel and vector.
#define BEGIN_(k, g) products[g][k] = START(k);
#define BEGIN(k) REPEAT_WITH(PRODUCTS, k, BEGIN_)
#define BEGIN_PRODUCTS                \
  SUMS_T products[PRODUCTS][VECTORS]; \
  REPEAT(VECTORS, BEGIN)
#define END_(p, k) SUM acc##p##_##k = ((const SUM*)&products[p / MATRIX_ROWS][k])[p % MATRIX_ROWS];
#define END(p) REPEAT_WITH(VECTORS, p, END_)
