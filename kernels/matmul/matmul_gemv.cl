// Multiplies few rows by constant weights. A work-group computes LANES x VECTOR columns of one row,
// and its SLICES share the sum over k. Weights are packed as [k][columns], with columns padded to
// whole work-groups. Defines:
//   T                      storage type
//   VECTOR, LANES, SLICES  columns of a work-item; work-group

typedef struct {
#include "kernels/matmul/matmul_gemv_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

WORK_GROUP(LANES, SLICES, 1)
KERNEL(IN(T, in), IN(T, weights), OUT(T, out), const FN(Args) s TAIL_PARAMS) {
  SHARED(float, sums, SLICES* LANES* VECTOR);
  const int lane = get_local_id(0), slice = get_local_id(1);
  const int c = (int)get_global_id(0) * VECTOR;
  const int row = (int)get_group_id(2) % s.rows, h = (int)get_group_id(2) / s.rows % s.slices_h;
  const int n = (int)get_group_id(2) / s.rows / s.slices_h;
  __global const T* const a = AT(in) + n * s.a_n + h * s.a_h + row * s.a_m;
  FV acc = 0;
#pragma unroll 4
  for (int k = slice; k < s.k; k += SLICES)
    acc = fma((FV)(LOADV(T, 1, a + k)), LOADV_ALIGNED(T, VECTOR, AT(weights) + k * s.columns + c),
              acc);
  STOREV(float, VECTOR, acc, sums + (slice * LANES + lane) * VECTOR);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice == 0 && c < s.n) {
    for (int i = 1; i < SLICES; ++i)
      acc += LOADV(float, VECTOR, sums + (i * LANES + lane) * VECTOR);
    const int left = s.n - c;
    acc = TAIL(acc, n, h, row, c, left);
    __global T* const to = AT(out) + n * s.o_n + h * s.o_h + row * s.o_m + c;
    if (left >= VECTOR) {
      STOREV(T, VECTOR, acc, to);
    } else {
      float part[VECTOR];
      STOREV_PRIVATE(VECTOR, acc, part);
      for (int j = 0; j < left; ++j) STOREV(T, 1, part[j], to + j);
    }
  }
}
