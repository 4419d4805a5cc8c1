// MVN, NormalizeL2, GRN and GroupNormalization: normalise rows to a mean of 0 and a variance or
// length of 1. A tensor is four loops c, w, h, n, innermost first; each either runs along the rows
// or counts them. LANES work-items share a row. Vectors run along c: they are parts of a row if c
// runs along it, else VECTOR adjacent rows. Defines:
//   T, OUT_T                    storage types of data and results
//   ROW_C, ROW_W, ROW_H, ROW_N  1: the loop runs along the rows
//   CENTER                      1: subtract the mean
//   SCALE                       factor: 0 none, 1 1 / sqrt(v + epsilon), 2 1 / (sqrt(v) + epsilon),
//                               3 1 / sqrt(max(v, epsilon))
//   AFFINE                      gamma and beta: 0 none, 1 along c, 2 one of each for all c
//   VECTOR, LANES, ROWS         elements of a vector; work-group
//   LOAD, SAVE                  read and write vectors, aligned or not

typedef struct {
#include "kernels/reduction/normalize_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define IV INTV(VECTOR)

#if ROW_C
#define SUM float
#define WHOLE(v) TOTAL(VECTOR, v)
#else
#define SUM FV
#define WHOLE(v) (v)
#endif
#if ROW_C && VECTOR > 1
// Selects the new elements of the last vector, which overlaps the one before it.
#define FRESH(v) select((FV)(0.0f), v, COUNTED(VECTOR) >= (IV)(c_wanted - c))
#else
#define FRESH(v) (v)
#endif

#if LANES > 1
// Adds `mine` over the work-items of a row, into `all`.
#define MEET(mine, all)                                                       \
  shared[lane * stride] = mine;                                               \
  for (int rest = LANES / 2; rest > 0; rest /= 2) {                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    if (lane < rest) shared[lane * stride] += shared[(lane + rest) * stride]; \
  }                                                                           \
  barrier(CLK_LOCAL_MEM_FENCE);                                               \
  const SUM all = shared[0];                                                  \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define MEET(mine, all) const SUM all = mine;
#endif

// Runs STATEMENT for every vector of the row: c, w, h, n are its position; c_wanted is its start if
// vectors did not overlap.
#if LANES > 1
#define VISIT(STATEMENT)                                         \
  for (int step = lane; step < steps; step += LANES) {           \
    int left = step;                                             \
    const int c_wanted = ROW_C ? left % vectors_c * VECTOR : c0; \
    const int c = min(c_wanted, a.size_c - VECTOR);              \
    if (ROW_C) left /= vectors_c;                                \
    const int w = ROW_W ? left % a.size_w : w0;                  \
    if (ROW_W) left /= a.size_w;                                 \
    const int h = ROW_H ? left % a.size_h : h0;                  \
    const int n = ROW_N ? (ROW_H ? left / a.size_h : left) : n0; \
    STATEMENT                                                    \
  }
#else
#define VISIT(STATEMENT)                                                                      \
  for (int n = n0; n < (ROW_N ? a.size_n : n0 + 1); ++n)                                      \
    for (int h = h0; h < (ROW_H ? a.size_h : h0 + 1); ++h)                                    \
      for (int w = w0; w < (ROW_W ? a.size_w : w0 + 1); ++w)                                  \
        for (int c_wanted = c0; c_wanted < (ROW_C ? a.size_c : c0 + 1); c_wanted += VECTOR) { \
          const int c = min(c_wanted, a.size_c - VECTOR);                                     \
          STATEMENT                                                                           \
        }
#endif
#define ELEMENT LOAD(T, VECTOR, AT(in) + n * a.in_n + h * a.in_h + w * a.in_w + c * a.in_c)

WORK_GROUP(ROW_C ? LANES : ROWS, ROW_C ? ROWS : LANES, 1)
KERNEL(IN(T, in), OUT(OUT_T, out),
#if AFFINE
       IN(float, gamma), IN(float, beta),
#endif
       const FN(Args) a TAIL_PARAMS) {
  const int row = get_local_id(ROW_C ? 1 : 0);
#if LANES > 1
  const int lane = get_local_id(ROW_C ? 0 : 1);
  SHARED(SUM, all_shared, LANES * ROWS);
  __local SUM* const shared = all_shared + (ROW_C ? row * LANES : row);
  const int stride = ROW_C ? 1 : ROWS;
  const int vectors_c = (a.size_c + VECTOR - 1) / VECTOR;
  const int steps = (ROW_C ? vectors_c : 1) * (ROW_W ? a.size_w : 1) * (ROW_H ? a.size_h : 1) *
                    (ROW_N ? a.size_n : 1);
#endif
  const int first = (int)get_group_id(0) * a.items_per_group;
  const int last = min(first + a.items_per_group, a.items);
  for (int base = first; base < last; base += ROWS) {
    // Work-items past the last row contribute nothing, but must reach the barriers.
    int left = min(base + row, last - 1);
#if ROW_C
    const int c0 = 0;
#else
    const int vectors = (a.size_c + VECTOR - 1) / VECTOR;
    const int c0 = min(left % vectors * VECTOR, a.size_c - VECTOR);
    left /= vectors;
#endif
    const int w0 = ROW_W ? 0 : left % a.size_w;
    if (!ROW_W) left /= a.size_w;
    const int h0 = ROW_H ? 0 : left % a.size_h;
    if (!ROW_H) left /= a.size_h;
    const int n0 = ROW_N ? 0 : left;

#if CENTER
    FV part = 0;
    VISIT(part += FRESH(ELEMENT);)
    MEET(WHOLE(part), total)
    const SUM mean = total * a.share;
#define CENTERED (ELEMENT - mean)
#else
#define CENTERED ELEMENT
#endif
#if SCALE
    FV squares = 0;
    VISIT(const FV v = FRESH(CENTERED); squares = fma(v, v, squares);)
    MEET(WHOLE(squares), length)
#if CENTER
    const SUM variance = length * a.share;
#else
    const SUM variance = length;
#endif
#if SCALE == 1
    const SUM scale = 1.0f / sqrt(variance + a.epsilon);
#elif SCALE == 2
    const SUM scale = 1.0f / (sqrt(variance) + a.epsilon);
#else
    const SUM scale = 1.0f / sqrt(fmax(variance, (SUM)(a.epsilon)));
#endif
#define SCALED (CENTERED * scale)
#else
#define SCALED CENTERED
#endif
#if AFFINE
#define AFFINE_AT (n * a.affine_n + h * a.affine_h + w * a.affine_w + c * a.affine_c)
#if AFFINE == 1
#define COEFFICIENT(p) LOADV(float, VECTOR, AT(p) + AFFINE_AT)
#else
#define COEFFICIENT(p) (FV)(AT(p)[AFFINE_AT])
#endif
#define RESULT fma(SCALED, COEFFICIENT(gamma), COEFFICIENT(beta))
#else
#define RESULT SCALED
#endif
    if (base + row < last)
      VISIT(SAVE(OUT_T, VECTOR, TAIL(RESULT, n, h, w, c, VECTOR),
                 AT(out) + n * a.out_n + h * a.out_h + w * a.out_w + c * a.out_c);)
  }
}
