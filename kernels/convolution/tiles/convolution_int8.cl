// Direct convolution of bytes on channels-last activations, with exact integer sums of four
// products at a time. A work-item computes TILE_P neighbouring pixels x VECTORS vectors of VECTOR
// output channels. Weights are packed as [group][block][kh][kw][four input
// channels][VECTORS][LANES][VECTOR] [4], with zeros for missing channels. A row of bytes after the
// weights, filled with the activation's zero point, is read for every pixel outside the input.
// Defines besides T (of the output), VECTOR, VECTORS and TILE_P:
//   ROW_OF_BYTES          few input channels: fours come from a row of the kernel, across pixels
//   LANES, ROWS           work-group: lanes along output channels x rows of tiles
//   DOT_AVX512, DOT_AVX, DOT_PTX, DOT_KHR, DOT_INTEL  the instruction that adds four products
//   DOT_PAIRS             instructions that add pairs; with none of these: plain arithmetic
//   ALIGNED               each pixel's channels start at a multiple of four bytes
//   SHIFTED               adds the channel's shift times the sum of the pixel's bytes to each sum
//   ROLLED                for a CPU: results are stored in a loop; blocks may be dimension 1
//   POINTWISE             1x1; input and output are each one long row of pixels
//   FLAT_TAIL             the tail's operands are long rows of pixels as well

#define RESULT(v) CAT(convert_, FV)(v)
#include "kernels/common/tile.cl"

#define IV INTV(VECTOR)

#define WIDE_1(f, x, w, acc) f(x, w, acc)
#define WIDE_2(f, x, w, acc) (int2)(f(x, (w).s0, (acc).s0), f(x, (w).s1, (acc).s1))
#define WIDE_4(f, x, w, acc) (int4)(WIDE_2(f, x, (w).lo, (acc).lo), WIDE_2(f, x, (w).hi, (acc).hi))
#define WIDE_8(f, x, w, acc) (int8)(WIDE_4(f, x, (w).lo, (acc).lo), WIDE_4(f, x, (w).hi, (acc).hi))

// Returns acc + the dot product of the four unsigned bytes of x and the four signed bytes of each
// element of w.
#if DOT_AVX512
inline IV FN(dot)(uint x, IV w, IV acc) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"((IV)(x)), "v"(w));
  return acc;
}
#elif DOT_AVX
inline IV FN(dot)(uint x, IV w, IV acc) {
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"((IV)(x)), "x"(w));
  return acc;
}
#elif DOT_PAIRS
#define ASM_BINARY(name, instruction)                              \
  inline IV FN(name)(IV a, IV b) {                                 \
    __asm__(instruction " %2, %1, %0" : "=v"(a) : "v"(a), "v"(b)); \
    return a;                                                      \
  }
// Multiplies unsigned by signed bytes, and adds pairs in 16 bits.
ASM_BINARY(byte_products, "vpmaddubsw")
ASM_BINARY(add_words, "vpmaddwd")  // multiplied by ones, adds pairs of words in 32 bits
#define ADD_PAIRS(pairs, acc) ((acc) + FN(add_words)(pairs, (IV)(0x00010001)))
// Multiplies |w| by x - 128, or by 127 - x if w < 0: the sum of two such products always fits 16
// bits, while that of w times x may not. The start sums contain the difference, 128 w or 127 w.
// After the magnitudes of a step's weights come its flips: 127 for each weight below 0, else 128.
inline IV FN(flipped_dot)(uint x, IV magnitudes, IV flips, IV acc) {
  return ADD_PAIRS(FN(byte_products)(magnitudes, (IV)(x) ^ flips), acc);
}
#elif DOT_PTX
inline int FN(dot1)(uint x, int w, int acc) {
  int sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(w), "r"(acc));
  return sum;
}
#define FN_DOT(x, w, acc) FN(dot1)(x, w, acc)
inline IV FN(dot)(uint x, IV w, IV acc) { return CAT(WIDE_, VECTOR)(FN_DOT, x, w, acc); }
#elif DOT_INTEL
#include "kernels/common/dot4.cl"
#define FN_DOT(x, w, acc) FN(dot4)(x, w, acc)
inline IV FN(dot)(uint x, IV w, IV acc) { return CAT(WIDE_, VECTOR)(FN_DOT, x, w, acc); }
#elif DOT_KHR
#define FN_DOT(x, w, acc) ((acc) + dot_4x8packed_us_int(x, as_uint(w)))
inline IV FN(dot)(uint x, IV w, IV acc) { return CAT(WIDE_, VECTOR)(FN_DOT, x, w, acc); }
#else
inline IV FN(dot)(uint x, IV w, IV acc) {
  acc += (IV)(x & 255) * (w << 24 >> 24);
  acc += (IV)(x >> 8 & 255) * (w << 16 >> 24);
  acc += (IV)(x >> 16 & 255) * (w << 8 >> 24);
  return acc + (IV)(x >> 24) * (w >> 24);
}
#endif

#if SHIFTED
#define SHIFTS IN(int, shifts),
#if DOT_PTX || DOT_INTEL || DOT_KHR
#define SUM int
#define ADD_UP(x, total) FN_DOT(x, 0x01010101, total)
#else  // loads all lanes, which occupies a register no longer
#define SUM IV
#if DOT_PAIRS
#define ADD_UP(x, total) ADD_PAIRS(FN(byte_products)((IV)(x), (IV)(0x01010101)), total)
#else
#define ADD_UP(x, total) FN(dot)(x, (IV)(0x01010101), total)
#endif
#endif
#define BEGIN_TOTAL(p) SUM total##p = 0;
#define TOTALS(p) total##p = ADD_UP(x##p, total##p);
#define SHIFT_(p, k) acc##p##_##k += ((__global const IV*)shift)[(k)*LANES] * total##p;
#define SHIFT(p) REPEAT_WITH(VECTORS, p, SHIFT_)
#else
#define SHIFTS
#define BEGIN_TOTAL(p)
#define TOTALS(p)
#define SHIFT(p)
#endif

// Load four bytes, or the first n of them.
#if ALIGNED
#define LOAD_FOUR(p) (*(__global const uint*)(p))
#else
#define LOAD_FOUR(p) as_uint(load4(p))
#endif
inline uint FN(some)(__global const uchar* p, int n) {
  uint x = p[0];
  if (n > 1) x |= (uint)p[1] << 8;
  if (n > 2) x |= (uint)p[2] << 16;
  return x;
}

#if ROW_OF_BYTES
// Returns bytes i .. i+3 of a row of `run` bytes, of which bytes from .. to-1 lie inside the input;
// the others are read as `zero`.
inline uint FN(across_border)(__global const uchar* row, int i, int run, int from, int to,
                              uint zero) {
  if (i >= from && i + 4 <= to) return LOAD_FOUR(row + i);
  uint x = 0;
  for (int j = 0; j < 4 && i + j < run; ++j)
    x |= (i + j >= from && i + j < to ? row[i + j] : zero) << 8 * j;
  return x;
}
#endif

#if DOT_PAIRS
#define WEIGHT_(j, k)                                 \
  const IV w##k = ((__global const IV*)w)[(k)*LANES], \
           flips##k = ((__global const IV*)(w + BLOCK))[(k)*LANES];
#define DOT_(p, k) acc##p##_##k = FN(flipped_dot)(x##p, w##k, flips##k, acc##p##_##k);
#define NEXT_WEIGHTS (2 * BLOCK)
#define BRING_ROWS BRING_AHEAD BRING_AHEAD
#else
#define WEIGHT_(j, k) const IV w##k = ((__global const IV*)w)[(k)*LANES];
#define DOT_(p, k) acc##p##_##k = FN(dot)(x##p, w##k, acc##p##_##k);
#define NEXT_WEIGHTS BLOCK
#define BRING_ROWS BRING_AHEAD
#endif
#define DOTS(p) REPEAT_WITH(VECTORS, p, DOT_)
#define FOUR(p) const uint x##p = LOAD_FOUR(r##p + i);
#define SOME(p) const uint x##p = FN(some)(r##p + i, rest);
#define STEP(X)                      \
  {                                  \
    REPEAT_WITH(VECTORS, 0, WEIGHT_) \
    REPEAT(TILE_P, X)                \
    REPEAT(TILE_P, DOTS)             \
    REPEAT(TILE_P, TOTALS)           \
    w += NEXT_WEIGHTS;               \
    BRING_ROWS                       \
  }
// Adds the products of n bytes of every pixel at r0, r1, ... and their rows of weights.
#define RUN(n)                              \
  {                                         \
    int i = 0;                              \
    for (; i + 4 <= (n); i += 4) STEP(FOUR) \
    const int rest = (n)-i;                 \
    if (rest > 0) STEP(SOME)                \
  }

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(uchar, in), IN(int, weights), IN(int, start_sums), SHIFTS OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  const int first = RUN_OF_TILES * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  const int group = BLOCK_NUMBER / a.blocks;
  const int lane_c = (BLOCK_NUMBER - group * a.blocks) * BLOCK + (int)get_local_id(0) * VECTOR;
  __global const uchar* const start = AT(in) + group * a.in_channels;
  __global const int* const block =
      AT(weights) + BLOCK_NUMBER * (a.depth * BLOCK) + (int)get_local_id(0) * VECTOR;
  const int channel = BLOCK_NUMBER * BLOCK + (int)get_local_id(0) * VECTOR;
  __global const int* const sums = AT(start_sums) + channel;
#if SHIFTED
  __global const int* const shift = AT(shifts) + channel;
#endif
#if !POINTWISE
  __global const uchar* const outside = (__global const uchar*)(AT(weights) + a.outside);
#include "kernels/common/tile_start.cl"
#endif
  for (int tile = first; tile < last; ++tile) {
    const int left = a.pixels - tile * TILE_P;
#define BEGIN_(p, k) IV acc##p##_##k = ((__global const IV*)sums)[(k)*LANES];
#define BEGIN(p) REPEAT_WITH(VECTORS, p, BEGIN_)
    REPEAT(TILE_P, BEGIN)
    REPEAT(TILE_P, BEGIN_TOTAL)
    __global const int* w = block;
    START_AHEAD(block, BLOCK * sizeof(int))

#if POINTWISE
    // Pixels past the end repeat the last one and are not stored.
#define POINT(p) \
  __global const uchar* const r##p = start + min(tile * TILE_P + p, a.pixels - 1) * a.in_w;
    REPEAT(TILE_P, POINT)
    RUN(a.in_channels)
#else
    int inside = 1;
    REPEAT(TILE_P, PLACE)
    if (inside) {
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < runs; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w;
#define INNER(p) __global const uchar* const r##p = start + (at##p + tap);
          REPEAT(TILE_P, INNER)
          RUN(run)
        }
    } else {
#if ROW_OF_BYTES
#define COLUMNS(p)                                    \
  const int from##p = max(-ix##p, 0) * a.in_channels; \
  const int to##p = min(a.iw - ix##p, a.kw) * a.in_channels;
      REPEAT(TILE_P, COLUMNS)
      for (int ky = 0; ky < a.kh; ++ky)
        for (int i = 0; i < run; i += 4) {
#define ACROSS(p)                                                              \
  const uint x##p =                                                            \
      FN(across_border)(start + (at##p + ky * a.dh * a.in_h), i, run, from##p, \
                        (uint)(iy##p + ky * a.dh) < (uint)a.ih ? to##p : 0, outside[0]);
          STEP(ACROSS)
        }
#else
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w;
#define BORDER(p) __global const uchar* const r##p = VALID(p) ? start + (at##p + tap) : outside;
          REPEAT(TILE_P, BORDER)
          RUN(a.in_channels)
        }
#endif
    }
#endif

    REPEAT(TILE_P, SHIFT)
#include "kernels/common/tile_store.cl"
  }
}
