// Computes the batched product of two activations with any strides. Defines:
//   DOT 0           a work-item computes TILE_M rows x VECTOR columns; rows of B are loaded as
//                   vectors if its columns are adjacent (B_VECTOR), else element by element
//   DOT 1           both operands are adjacent along k (Q times K transposed): TILE_M rows x TILE_N
//                   columns, VECTOR products at a time
//   DOT 2           as 0, but a work-item first copies DEPTH rows of its columns of B, so that
//                   they are adjacent for all its tiles (CPUs: what they copy stays in the cache)
//   T, LANES, ROWS  storage type; work-group: columns x tiles of rows

typedef struct {
#include "kernels/matmul/matmul_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(T, left), IN(T, right), OUT(T, out), const FN(Args) s TAIL_PARAMS) {
  int rest = get_global_id(2);
  const int i3 = rest % s.size3;
  rest /= s.size3;
  const int i2 = rest % s.size2;
  rest /= s.size2;
  const int i1 = rest % s.size1, i0 = rest / s.size1;
  __global const T* const a = AT(left) + i0 * s.a0 + i1 * s.a1 + i2 * s.a2 + i3 * s.a3;
  __global const T* const b = AT(right) + i0 * s.b0 + i1 * s.b1 + i2 * s.b2 + i3 * s.b3;
  __global T* const o = AT(out) + i0 * s.o0 + i1 * s.o1 + i2 * s.o2 + i3 * s.o3;
  const int first = (int)get_global_id(1) * s.tiles_per_item;
  const int last = min(first + s.tiles_per_item, s.tiles);
#if DOT == 1
  const int c = (int)get_global_id(0) * TILE_N;
#else
  const int c = (int)get_global_id(0) * VECTOR;
#endif
  if (c >= s.n) return;

#if DOT == 2
  float columns_of_b[DEPTH * VECTOR];
  for (int j = 0; j < VECTOR; ++j) {
    __global const T* const from = b + min(c + j, s.n - 1) * s.b_n;
    for (int k = 0; k < DEPTH; ++k) columns_of_b[k * VECTOR + j] = LOADV(T, 1, from + k * s.b_k);
  }
#endif
  for (int tile = first; tile < last; ++tile) {
    const int row = tile * TILE_M;
#define ROW(p) __global const T* const a##p = a + min(row + p, s.m - 1) * s.a_m;
    REPEAT(TILE_M, ROW)

#if DOT == 1
#define COLUMN_(p, q) __global const T* const b##q = b + min(c + q, s.n - 1) * s.b_n;
    REPEAT_WITH(TILE_N, 0, COLUMN_)
#define CLEAR_(p, q) FV acc##p##_##q = 0;
#define CLEAR(p) REPEAT_WITH(TILE_N, p, CLEAR_)
    REPEAT(TILE_M, CLEAR)
    int k = 0;
    for (; k + VECTOR <= s.k; k += VECTOR) {
#define LOAD_B_(p, q) const FV y##q = LOADV(T, VECTOR, b##q + k);
      REPEAT_WITH(TILE_N, 0, LOAD_B_)
#define FMA_(p, q) acc##p##_##q = fma(x##p, y##q, acc##p##_##q);
#define MULTIPLY(p)                             \
  {                                             \
    const FV x##p = LOADV(T, VECTOR, a##p + k); \
    REPEAT_WITH(TILE_N, p, FMA_)                \
  }
      REPEAT(TILE_M, MULTIPLY)
    }
#define FINISH_(p, q)                                                                           \
  if (row + p < s.m && c + q < s.n) {                                                           \
    float part[VECTOR];                                                                         \
    STOREV_PRIVATE(VECTOR, acc##p##_##q, part);                                                 \
    float sum = 0;                                                                              \
    for (int i = 0; i < VECTOR; ++i) sum += part[i];                                            \
    for (int i = k; i < s.k; ++i) sum = fma(LOADV(T, 1, a##p + i), LOADV(T, 1, b##q + i), sum); \
    sum = TAIL(sum, i2, i3, row + p, c + q, 1);                                                 \
    STOREV(T, 1, sum, o + (row + p) * s.o_m + c + q);                                           \
  }
#define FINISH(p) REPEAT_WITH(TILE_N, p, FINISH_)
    REPEAT(TILE_M, FINISH)

#else
    const int columns = s.n - c;
#define CLEAR(p) FV acc##p = 0;
    REPEAT(TILE_M, CLEAR)
#define MULTIPLY(p) acc##p = fma((FV)(LOADV(T, 1, a##p + k * s.a_k)), y, acc##p);
#if DOT == 2
    for (int k = 0; k < DEPTH; ++k) {
      const FV y = LOADV_PRIVATE(VECTOR, columns_of_b + k * VECTOR);
      REPEAT(TILE_M, MULTIPLY)
    }
#else
    if (B_VECTOR && columns >= VECTOR) {
      for (int k = 0; k < s.k; ++k) {
        const FV y = LOADV(T, VECTOR, b + k * s.b_k + c);
        REPEAT(TILE_M, MULTIPLY)
      }
    } else {
      for (int k = 0; k < s.k; ++k) {
        float part[VECTOR];
        for (int j = 0; j < VECTOR; ++j)
          part[j] = LOADV(T, 1, b + k * s.b_k + min(c + j, s.n - 1) * s.b_n);
        const FV y = LOADV_PRIVATE(VECTOR, part);
        REPEAT(TILE_M, MULTIPLY)
      }
    }
#endif
#define FINISH(p)                                                      \
  if (row + p < s.m) {                                                 \
    __global T* const to = o + (row + p) * s.o_m + c;                  \
    const FV v = TAIL(acc##p, i2, i3, row + p, c, columns);            \
    if (columns >= VECTOR) {                                           \
      STOREV(T, VECTOR, v, to);                                        \
    } else {                                                           \
      float part[VECTOR];                                              \
      STOREV_PRIVATE(VECTOR, v, part);                                 \
      for (int j = 0; j < columns; ++j) STOREV(T, 1, part[j], to + j); \
    }                                                                  \
  }
    REPEAT(TILE_M, FINISH)
#endif
  }
}
