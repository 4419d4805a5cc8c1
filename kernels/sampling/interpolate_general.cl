// Computes Interpolate along any axes of tensors with up to five dimensions and any strides. One
// work-item computes one element of the output. The tables are those of interpolate.cl, for all
// dimensions; dimensions are numbered from the innermost in memory. Defines:
//   T      storage type
//   MOVE   1: the table moves elements of any type, and T is the unsigned type of their size; a
//          weight of 0 marks a pad
//   LOCAL  size of the work-group

typedef struct {
#include "kernels/sampling/interpolate_general_args.cl"
} FN(Args);

int FN(index_of)(const int* index, int dim) { return dim < 0 ? 0 : index[dim]; }

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), IN(int, start), IN(float, weight), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int rest = get_global_id(0);
  if (rest >= a.elements) return;
  int index[5];
  __global const T* from = AT(in);
  __global T* to = AT(out);
  __global const float* w[5];
  for (int d = 0; d < 5; ++d) {
    index[d] = rest % a.size[d];
    rest /= a.size[d];
    from += AT(start)[a.start[d] + index[d]] * a.in[d];
    to += index[d] * a.out[d];
    w[d] = AT(weight) + a.weight[d] + index[d] * a.taps[d];
  }
#if MOVE
  *to = w[0][0] * w[1][0] * w[2][0] * w[3][0] * w[4][0] != 0.0f ? *from : (T)0;
#else
  float value = 0;
  for (int i4 = 0; i4 < a.taps[4]; ++i4)
    for (int i3 = 0; i3 < a.taps[3]; ++i3)
      for (int i2 = 0; i2 < a.taps[2]; ++i2)
        for (int i1 = 0; i1 < a.taps[1]; ++i1) {
          const float outer = w[4][i4] * w[3][i3] * w[2][i2] * w[1][i1];
          __global const T* const row =
              from + i4 * a.in[4] + i3 * a.in[3] + i2 * a.in[2] + i1 * a.in[1];
          float sum = 0;
          for (int i0 = 0; i0 < a.taps[0]; ++i0)
            sum = fma(LOADV(T, 1, row + i0 * a.in[0]), w[0][i0], sum);
          value = fma(sum, outer, value);
        }
  const int n = FN(index_of)(index, a.n), h = FN(index_of)(index, a.h),
            x = FN(index_of)(index, a.w), c = FN(index_of)(index, a.c);
  STOREV(T, 1, TAIL(value, n, h, x, c, 1), to);
#endif
}
