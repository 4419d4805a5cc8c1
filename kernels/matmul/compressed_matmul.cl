// Multiplies rows by constant weights of BITS bits, which are decompressed in registers: a weight is
// (integer - zero) * scale, with one scale and zero for a run of weights of a column. A word holds 32
// / BITS integers of one column, the first one in its lowest bits; words are packed as
// [block][word][BLOCK columns], scales and 2^BITS + zeros as [block][scale][BLOCK columns]. Defines:
//   T, SCALE_T              storage types of the data, and of scales and zeros
//   BITS, ZEROS             bits of an integer; whether there are zeros other than the middle one
//   ADJACENT                whether the elements of a row are adjacent
//   TILE_M, VECTORS, VECTOR a work-item computes TILE_M rows x VECTORS vectors of columns
//   LANES, SLICES           work-group: vectors of a row x slices of the runs, whose sums are added
//                           in local memory

typedef struct {
#include "kernels/matmul/compressed_matmul_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define IV INTV(VECTOR)
#define STRIDE (LANES * VECTOR)
// A constant stride lets compilers read elements that are adjacent, as they mostly are, as vectors.
#if ADJACENT
#define STEP_K 1
#else
#define STEP_K s.a_k
#endif
#define BLOCK (STRIDE * VECTORS)
#define IN_A_WORD (32 / BITS)
// The float 2^BITS + integer has the bits of 2^BITS with the integer as the first ones behind the
// point. Building it takes fewer instructions than a conversion; 2^BITS is subtracted with the zero.
#define POWER ((float)(1 << BITS))
#define FIRST (23 - BITS)
#define MASK (((1 << BITS) - 1) << FIRST)

#if ZEROS
#define LOAD_ZERO(v) const FV zero##v = LOADV(SCALE_T, VECTOR, zero + (v)*STRIDE);
#define ZERO(v) zero##v
#else
#define LOAD_ZERO(v)
#define ZERO(v) (1.5f * POWER)
#endif
#define LOAD_SCALE(v) const FV scale##v = LOADV(SCALE_T, VECTOR, scale + (v)*STRIDE);
#define LOAD_WORD(v) const IV word##v = *(__global const IV*)(w + (v)*STRIDE);
// Takes integer j of each word.
#define TAKE(v) \
  const FV y##v = CAT(as_, FV)((MOVED(word##v, FIRST - j * BITS) & MASK) | as_int(POWER)) - ZERO(v);
#define MOVED(word, by) \
  ((by) > 0 ? (word) << ((by) > 0 ? (by) : 0) : (word) >> ((by) > 0 ? 0 : -(by)))

#define MULTIPLY_(p, v) sum##p##_##v = fma((FV)x##p, y##v, sum##p##_##v);
#define MULTIPLY(p)                                    \
  {                                                    \
    const float x##p = LOADV(T, 1, a##p + k * STEP_K); \
    REPEAT_WITH(VECTORS, p, MULTIPLY_)                 \
  }

// The indices m, h and n of row r, counted over all matrices.
#define ROW_M(r) ((r) % s.rows)
#define ROW_H(r) ((r) / s.rows % s.slices_h)
#define ROW_N(r) ((r) / s.rows / s.slices_h)
#define PLACE(p)                            \
  const int row##p = min(row + p, s.m - 1); \
  __global const T* const a##p =            \
      AT(in) + ROW_N(row##p) * s.a_n + ROW_H(row##p) * s.a_h + ROW_M(row##p) * s.a_m;

static inline void FN(store)(FV v, int row, int c, __global T* out, const FN(Args) s TAIL_PARAMS) {
  const int left = s.n - c;
  if (row >= s.m || left <= 0) return;
  v = TAIL(v, ROW_N(row), ROW_H(row), ROW_M(row), c, left);
  __global T* const to = out + ROW_N(row) * s.o_n + ROW_H(row) * s.o_h + ROW_M(row) * s.o_m + c;
  if (left >= VECTOR) {
    STOREV(T, VECTOR, v, to);
  } else {
    float part[VECTOR];
    STOREV_PRIVATE(VECTOR, v, part);
    for (int j = 0; j < left; ++j) STOREV(T, 1, part[j], to + j);
  }
}

WORK_GROUP(LANES, SLICES, 1)
KERNEL(IN(T, in), IN(int, words), IN(SCALE_T, scales),
#if ZEROS
       IN(SCALE_T, zeros),
#endif
       OUT(T, out), const FN(Args) s TAIL_PARAMS) {
  const int block = get_group_id(0), lane = get_local_id(0) * VECTOR;
  const int c = block * BLOCK + lane;
  __global const int* const first_word =
      AT(words) + (size_t)block * (s.runs * s.run_words) * BLOCK + lane;
  const size_t first_scale = (size_t)block * (s.runs / s.runs_a_scale) * BLOCK + lane;
  const int first = (int)get_group_id(2) * s.tiles_per_item;
  const int last = min(first + s.tiles_per_item, s.tiles);
#define STEP_TO_RUN(r)                                                   \
  __global const SCALE_T* const scale =                                  \
      AT(scales) + first_scale + (size_t)((r) / s.runs_a_scale) * BLOCK; \
  STEP_TO_ZERO(r)
#if ZEROS
#define STEP_TO_ZERO(r)                \
  __global const SCALE_T* const zero = \
      AT(zeros) + first_scale + (size_t)((r) / s.runs_a_scale) * BLOCK;
#else
#define STEP_TO_ZERO(r)
#endif

#if SLICES > 1
  SHARED(float, sums, SLICES* TILE_M* BLOCK);
#endif
  const int slice = get_local_id(1);
  for (int tile = first; tile < last; ++tile) {
    const int row = tile * TILE_M;
    REPEAT(TILE_M, PLACE)
#define CLEAR_(p, v) FV all##p##_##v = 0;
#define CLEAR(p) REPEAT_WITH(VECTORS, p, CLEAR_)
    REPEAT(TILE_M, CLEAR)
    for (int r = slice; r < s.runs; r += SLICES) {
      STEP_TO_RUN(r)
      REPEAT(VECTORS, LOAD_SCALE)
      REPEAT(VECTORS, LOAD_ZERO)
#define BEGIN_(p, v) FV sum##p##_##v = 0;
#define BEGIN(p) REPEAT_WITH(VECTORS, p, BEGIN_)
      REPEAT(TILE_M, BEGIN)
      __global const int* w = first_word + (size_t)r * s.run_words * BLOCK;
      int k = r * s.run_words * IN_A_WORD;
      for (int i = 0; i < s.run_words; ++i, w += BLOCK) {
        REPEAT(VECTORS, LOAD_WORD)
#pragma unroll
        for (int j = 0; j < IN_A_WORD; ++j, ++k) {
          REPEAT(VECTORS, TAKE)
          REPEAT(TILE_M, MULTIPLY)
        }
      }
#define END_(p, v) all##p##_##v = fma(sum##p##_##v, scale##v, all##p##_##v);
#define END(p) REPEAT_WITH(VECTORS, p, END_)
      REPEAT(TILE_M, END)
    }
#if SLICES > 1
#define SHARE_(p, v) \
  STOREV(float, VECTOR, all##p##_##v, sums + (slice * TILE_M + p) * BLOCK + (v)*STRIDE + lane);
#define SHARE(p) REPEAT_WITH(VECTORS, p, SHARE_)
    REPEAT(TILE_M, SHARE)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = slice; p < TILE_M * VECTORS; p += SLICES) {
      const int at = p / VECTORS * BLOCK + p % VECTORS * STRIDE + lane;
      FV sum = 0;
      for (int i = 0; i < SLICES; ++i) sum += LOADV(float, VECTOR, sums + i * TILE_M * BLOCK + at);
      FN(store)(sum, row + p / VECTORS, c + p % VECTORS * STRIDE, AT(out), s TAIL_ARGS);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    // Copies of the tail would be most of the code that a compiler reads.
    FV results[TILE_M * VECTORS];
#define KEEP_(p, v) results[(p)*VECTORS + (v)] = all##p##_##v;
#define KEEP(p) REPEAT_WITH(VECTORS, p, KEEP_)
    REPEAT(TILE_M, KEEP)
#pragma unroll 1
    for (int p = 0; p < TILE_M * VECTORS; ++p)
      FN(store)(results[p], row + p / VECTORS, c + p % VECTORS * STRIDE, AT(out), s TAIL_ARGS);
#endif
  }
}
