// SoftMax, LogSoftmax and SoftMaxMean of any strides. Defines:
//   IN_T, OUT_T          types of input and output
//   LOGARITHM            1: LogSoftmax
//   MEAN                 1: SoftMaxMean: the sum of `weights` times the probabilities
//   ALONG                0: a work-item computes VECTOR neighbouring rows at once, stepping along
//                        the axis; 1: LANES work-items share a row and step along the axis in
//                        vectors, which are adjacent in memory with VECTOR > 1
//   KEEP                 1: exponentials are kept in the output instead of being computed twice;
//                        both types are float
//   UNIT                 1: the elements of a vector are adjacent in both tensors
//   LOAD                 reads a vector of adjacent elements, aligned or not
//   VECTOR, LANES, ROWS  elements of a vector; work-group

typedef struct {
#include "kernels/reduction/softmax_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define IV INTV(VECTOR)

#if UNIT
#define GET(p, stride) LOAD(IN_T, VECTOR, p)
#define PUT(v, p, stride) STOREV(OUT_T, VECTOR, v, p)
#else
FV FN(get)(__global const IN_T* p, int stride) {
  float part[VECTOR];
  for (int k = 0; k < VECTOR; ++k) part[k] = LOADV(IN_T, 1, p + k * stride);
  return LOADV_PRIVATE(VECTOR, part);
}
void FN(put)(FV v, __global OUT_T* p, int stride) {
  float part[VECTOR];
  STOREV_PRIVATE(VECTOR, v, part);
  for (int k = 0; k < VECTOR; ++k) STOREV(OUT_T, 1, part[k], p + k * stride);
}
#define GET(p, stride) FN(get)(p, stride)
#define PUT(v, p, stride) FN(put)(v, p, stride)
#endif

#if ALONG && VECTOR > 1
// Selects the new elements of the last vector, which overlaps the one before it.
#define NEW(v, old) select((FV)(0.0f), v, COUNTED(VECTOR) >= (IV)(old))
#else
#define NEW(v, old) (v)
#endif

#if MEAN
#define WEIGHTS_PARAM IN(float, weights),
#if ALONG
#define WEIGHT LOADV(float, VECTOR, AT(weights) + min(i, a.axis - VECTOR))
#else
#define WEIGHT (FV)(AT(weights)[i])
#endif
#else
#define WEIGHTS_PARAM
#endif

#if ALONG && LANES > 1
// Reduces the values of the work-items of a row to one, by OP.
#define MEET(value, OP)                                                            \
  shared[lane] = value;                                                            \
  for (int half_way = LANES / 2; half_way > 0; half_way /= 2) {                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                  \
    if (lane < half_way) shared[lane] = OP(shared[lane], shared[lane + half_way]); \
  }                                                                                \
  barrier(CLK_LOCAL_MEM_FENCE);                                                    \
  value = shared[0];                                                               \
  barrier(CLK_LOCAL_MEM_FENCE);
#define PLUS(x, y) ((x) + (y))
#else
#define MEET(value, OP)
#endif

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(IN_T, in), WEIGHTS_PARAM OUT(OUT_T, out), const FN(Args) a) {
#if ALONG && LANES > 1
  SHARED(float, all_shared, ROWS* LANES);
  const int lane = get_local_id(0);
  __local float* const shared = all_shared + (int)get_local_id(1) * LANES;
#endif
  const int first = (int)get_group_id(0) * a.items_per_group;
  const int last = min(first + a.items_per_group, a.items);
  for (int base = first; base < last; base += ROWS) {
    const int item = base + (int)get_local_id(1);
    // Work-items past the last one contribute nothing, but must reach the barriers.
    int rest = min(item, last - 1);
#if ALONG
    const int inner = rest % a.inner;
    rest /= a.inner;
#else
    const int inner = min(rest % a.vectors * VECTOR, a.inner - VECTOR);
    rest /= a.vectors;
#endif
    __global const IN_T* from = AT(in) + inner * a.in_inner;
    __global OUT_T* to = AT(out) + inner * a.out_inner;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      const int i = rest % a.size[d];
      rest /= a.size[d];
      from += i * a.in[d];
      to += i * a.out[d];
    }
#if ALONG
#if LANES > 1
    const int begin = lane * VECTOR;
#else
    const int begin = 0;
#endif
#define STEP (LANES * VECTOR)
#define AXIS(stride) (min(i, a.axis - VECTOR) * stride)
#else
    const int begin = 0;
#define STEP 1
#define AXIS(stride) (i * stride)
#endif

    FV most = -INFINITY;
    for (int i = begin; i < a.axis; i += STEP)
      most = fmax(most, GET(from + AXIS(a.in_axis), a.in_inner));
#if ALONG
    float largest = GREATEST(VECTOR, most);
    MEET(largest, fmax)
#else
    const FV largest = most;
#endif

    FV part = 0;
#if MEAN
    FV weighted = 0;
#endif
    for (int i = begin; i < a.axis; i += STEP) {
      const FV e = gate_weight(GET(from + AXIS(a.in_axis), a.in_inner) - largest);
      const FV added = NEW(e, i - min(i, a.axis - VECTOR));
      part += added;
#if MEAN
      weighted = fma(added, WEIGHT, weighted);
#endif
#if KEEP && !LOGARITHM && !MEAN
      PUT(e, to + AXIS(a.out_axis), a.out_inner);
#endif
    }
#if ALONG
    float sum = TOTAL(VECTOR, part);
    MEET(sum, PLUS)
#if MEAN
    float mean = TOTAL(VECTOR, weighted);
    MEET(mean, PLUS)
#endif
#else
    const FV sum = part;
#if MEAN
    const FV mean = weighted;
#endif
#endif

#if ALONG && LANES > 1
    if (item < last)
#endif
    {
#if MEAN && ALONG
#if LANES > 1
      if (lane == 0)
#endif
        STOREV(OUT_T, 1, mean / sum, to);
#elif MEAN
      PUT(mean / sum, to, a.out_inner);
#elif LOGARITHM
      const FV below = (FV)(log(sum));
      for (int i = begin; i < a.axis; i += STEP)
        PUT(GET(from + AXIS(a.in_axis), a.in_inner) - largest - below, to + AXIS(a.out_axis),
            a.out_inner);
#else
      const FV scale = (FV)(1.0f / sum);
// The last vector overlaps the one before it, but each value must be scaled once.
#if KEEP && ALONG
      int i = 0;
      for (; i + VECTOR <= a.axis; i += VECTOR)
        PUT(GET(to + i * a.out_axis, a.out_inner) * scale, to + i * a.out_axis, a.out_inner);
      for (; i < a.axis; ++i) to[i * a.out_axis] *= 1.0f / sum;
#elif KEEP
      for (int i = 0; i < a.axis; ++i)
        PUT(GET(to + i * a.out_axis, a.out_inner) * scale, to + i * a.out_axis, a.out_inner);
#else
      for (int i = begin; i < a.axis; i += STEP)
        PUT(gate_weight(GET(from + AXIS(a.in_axis), a.in_inner) - largest) * scale,
            to + AXIS(a.out_axis), a.out_inner);
#endif
#endif
    }
  }
}
