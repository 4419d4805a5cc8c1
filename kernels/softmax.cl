// SoftMax and LogSoftmax along one dimension, in float. Two kernels: LANES makes V neighbouring rows a work-item (short rows,
// any strides), else a work-group of GROUP makes one row that is dense, V elements at a time (long rows).
// Defines: LANES 0 or 1; V; GROUP; IN_T, OUT_T: float or half; LOGARITHM 0 or 1; DIMS loops over the rows, innermost first.

struct FN(Walk) {
  int length, from_step, to_step;            // of a row, in elements
  int size[DIMS], from[DIMS], to[DIMS];      // of the loops over rows
};

#if LOGARITHM
#define SCALE(sum) log(sum)
#define RESULT(x, scale) ((x) - (scale))
#else
#define SCALE(sum) (1.0f / (sum))
#define RESULT(x, scale) (exp(x) * (scale))
#endif

#if LANES
// V elements `step` apart; beyond `last` the one at `last` again.
FLOATV(V) FN(gather)(__global const IN_T *p, int step, int last) {
#if V == 1
  return LOADV(IN_T, 1, p);
#else
  if (step == 1 && last >= V - 1) return LOADV(IN_T, V, p);
  float lanes[V];
  for (int i = 0; i < V; ++i) lanes[i] = LOADV(IN_T, 1, p + min(i, last) * step);
  return LOADV_PRIVATE(V, lanes);
#endif
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(IN(IN_T, in), OUT(OUT_T, out), const struct FN(Walk) walk) {
  const int blocks = (walk.size[0] + V - 1) / V;
  int rest = (int)get_global_id(0);
  const int first = rest % blocks * V, last = min(V, walk.size[0] - first) - 1;
  rest /= blocks;
  int from = first * walk.from[0], to = first * walk.to[0];
#pragma unroll
  for (int d = 1; d < DIMS; ++d) {
    const int i = rest % walk.size[d];
    rest /= walk.size[d];
    from += i * walk.from[d];
    to += i * walk.to[d];
  }
  if (rest > 0) return;

  __global const IN_T *source = AT(in) + from;
  __global OUT_T *target = AT(out) + to;
  FLOATV(V) most = FN(gather)(source, walk.from[0], last);
  for (int c = 1; c < walk.length; ++c) most = fmax(most, FN(gather)(source + c * walk.from_step, walk.from[0], last));
  FLOATV(V) sum = 0.0f;
  for (int c = 0; c < walk.length; ++c) sum += exp(FN(gather)(source + c * walk.from_step, walk.from[0], last) - most);
  const FLOATV(V) scale = SCALE(sum);
  for (int c = 0; c < walk.length; ++c) {
    const FLOATV(V) x = FN(gather)(source + c * walk.from_step, walk.from[0], last) - most;
    const FLOATV(V) y = RESULT(x, scale);
    __global OUT_T *p = target + c * walk.to_step;
#if V == 1
    STOREV(OUT_T, 1, y, p);
#else
    if (walk.to[0] == 1 && last == V - 1) {
      STOREV(OUT_T, V, y, p);
    } else {
      float lanes[V];
      STOREV_PRIVATE(V, y, lanes);
      for (int i = 0; i <= last; ++i) STOREV(OUT_T, 1, lanes[i], p + i * walk.to[0]);
    }
#endif
  }
}

#else

// Combines one value of each work-item; all get the result.
#define COMBINE(value, operation)                                          \
  for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {      \
    scratch[me] = value;                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                          \
    value = operation(value, scratch[me ^ half_group]);                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                          \
  }
#define SUM_OF(a, b) ((a) + (b))

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(IN(IN_T, in), OUT(OUT_T, out), const struct FN(Walk) walk) {
  __local float scratch[GROUP];
  const int me = (int)get_local_id(0);
  int rest = (int)get_group_id(0), from = 0, to = 0;
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    const int i = rest % walk.size[d];
    rest /= walk.size[d];
    from += i * walk.from[d];
    to += i * walk.to[d];
  }
  __global const IN_T *source = AT(in) + from;
  __global OUT_T *target = AT(out) + to;
  const int whole = walk.length / V * V;  // elements in whole vectors; the others one by one

  float most = -INFINITY;
#if V > 1
  FLOATV(V) wide = -INFINITY;
  for (int c = me * V; c < whole; c += GROUP * V) wide = fmax(wide, LOADV(IN_T, V, source + c));
  float lanes[V];
  STOREV_PRIVATE(V, wide, lanes);
  for (int i = 0; i < V; ++i) most = fmax(most, lanes[i]);
#endif
  for (int c = (V > 1 ? whole : 0) + me; c < walk.length; c += GROUP) most = fmax(most, LOADV(IN_T, 1, source + c));
  COMBINE(most, fmax)

  float sum = 0.0f;
#if V > 1
  wide = 0.0f;
  for (int c = me * V; c < whole; c += GROUP * V) wide += exp(LOADV(IN_T, V, source + c) - most);
  STOREV_PRIVATE(V, wide, lanes);
  for (int i = 0; i < V; ++i) sum += lanes[i];
#endif
  for (int c = (V > 1 ? whole : 0) + me; c < walk.length; c += GROUP) sum += exp(LOADV(IN_T, 1, source + c) - most);
  COMBINE(sum, SUM_OF)

  const float scale = SCALE(sum);
#if V > 1
  for (int c = me * V; c < whole; c += GROUP * V) {
    const FLOATV(V) x = LOADV(IN_T, V, source + c) - most;
    const FLOATV(V) y = RESULT(x, scale);
    STOREV(OUT_T, V, y, target + c);
  }
#endif
  for (int c = (V > 1 ? whole : 0) + me; c < walk.length; c += GROUP) {
    const float x = LOADV(IN_T, 1, source + c) - most;
    STOREV(OUT_T, 1, RESULT(x, scale), target + c);
  }
}
#endif
