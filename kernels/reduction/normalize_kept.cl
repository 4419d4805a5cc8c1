// MVN and NormalizeL2 of dense rows, which the LANES work-items of a row keep in registers: each
// reads VECTORS vectors of it, once. Defines:
//   T, OUT_T       storage types of data and results
//   CENTER, SCALE  as normalize.cl has them
//   VECTOR         elements of a vector, aligned to its size, of which a row has a whole number
//   VECTORS        vectors of a work-item
//   LANES, ROWS    work-group

typedef struct {
#include "kernels/reduction/normalize_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

// Adds `mine` over the work-items of a row. `shared` is used once.
inline float FN(row_sum)(__local float* shared, int lane, float mine) {
  shared[lane] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  float4 all = (float4)(0.0f);
  for (int k = 0; k < LANES; k += 4) all += *(__local const float4*)(shared + k);
  return TOTAL_4(all);
}

#define EACH_VECTOR(STATEMENT)                                  \
  for (int i = 0; i < VECTORS; ++i) {                           \
    const int c = (i * LANES + lane) * VECTOR;                  \
    if (VECTORS * LANES * VECTOR == a.size_c || c < a.size_c) { \
      STATEMENT                                                 \
    }                                                           \
  }

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(T, in), OUT(OUT_T, out), const FN(Args) a TAIL_PARAMS) {
  SHARED(float4, sums, 2 * ROWS * LANES / 4);
  const int lane = get_local_id(0), row = get_local_id(1);
  __local float* const shared = (__local float*)sums + row * 2 * LANES;
  const int own = (int)get_group_id(0) * ROWS + row;
  // Work-items past the last row store nothing, but must reach the barriers.
  int left = min(own, a.items - 1);
  const int w = left % a.size_w;
  left /= a.size_w;
  const int h = left % a.size_h, n = left / a.size_h;
  __global const T* const from = AT(in) + n * a.in_n + h * a.in_h + w * a.in_w;
  FV x[VECTORS];
#pragma unroll
  EACH_VECTOR(x[i] = LOADV_ALIGNED(T, VECTOR, from + c);)
#if CENTER
  float part = 0;
#pragma unroll
  EACH_VECTOR(part += TOTAL(VECTOR, x[i]);)
  const float mean = FN(row_sum)(shared, lane, part) * a.share;
#pragma unroll
  EACH_VECTOR(x[i] -= mean;)
#endif
#if SCALE
  float squares = 0;
#pragma unroll
  EACH_VECTOR(squares += TOTAL(VECTOR, x[i] * x[i]);)
  const float length = FN(row_sum)(shared + LANES, lane, squares);
  const float variance = CENTER ? length * a.share : length;
#if SCALE == 1
  const float scale = 1.0f / sqrt(variance + a.epsilon);
#elif SCALE == 2
  const float scale = 1.0f / (sqrt(variance) + a.epsilon);
#else
  const float scale = 1.0f / sqrt(fmax(variance, a.epsilon));
#endif
#else
  const float scale = 1.0f;
#endif
  if (own >= a.items) return;
  __global OUT_T* const to = AT(out) + n * a.out_n + h * a.out_h + w * a.out_w;
#pragma unroll
  EACH_VECTOR(STOREV_ALIGNED(OUT_T, VECTOR, TAIL(x[i] * scale, n, h, w, c, VECTOR), to + c);)
}
