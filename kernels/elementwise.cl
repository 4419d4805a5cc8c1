// Element functions: out = steps(in), all steps in the generated tail. Every operand, input included, is walked along the same
// four merged dimensions n, h, w, c; c is innermost in the output's memory.
// Defines: T_IN, T_OUT, V (vector along c), STEP_C (stride of the input along c: 0 broadcast, 1 adjacent, 2 any other),
// RUN (vectors of one work-item).
typedef struct {
  int n, h, w, c;                  // sizes
  int in_n, in_h, in_w, in_c;      // strides
  int out_n, out_h, out_w, out_c;
} FN(Args);

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(IN(T_IN, in), OUT(T_OUT, out), const FN(Args) a TAIL_PARAMS) {
  const int runs = (a.c + V * RUN - 1) / (V * RUN);
  int rest = (int)get_global_id(0);
  const int begin = rest % runs * (V * RUN);
  rest /= runs;
  const int w = rest % a.w;
  rest /= a.w;
  const int h = rest % a.h;
  const int n = rest / a.h;
  if (n >= a.n) return;
  __global const T_IN *source = AT(in) + n * a.in_n + h * a.in_h + w * a.in_w;
  __global T_OUT *target = AT(out) + n * a.out_n + h * a.out_h + w * a.out_w;
  const int end = min(begin + V * RUN, a.c);
  int c = begin;
#if V > 1
  for (; c + V <= end; c += V) {
#if STEP_C == 0
    const FLOATV(V) x = (FLOATV(V))(LOADV(T_IN, 1, source));
#else
    const FLOATV(V) x = LOADV(T_IN, V, source + c);
#endif
    const FLOATV(V) y = TAIL(x, n, h, w, c, V);
    STOREV(T_OUT, V, y, target + c);
  }
  if (c < end) {
    const int left = end - c;
    float part[V];
    for (int i = 0; i < V; ++i) part[i] = i < left ? LOADV(T_IN, 1, source + (c + i) * (STEP_C ? 1 : 0)) : 0.0f;
    const FLOATV(V) y = TAIL(LOADV_PRIVATE(V, part), n, h, w, c, left);
    STOREV_PRIVATE(V, y, part);
    for (int i = 0; i < left; ++i) STOREV(T_OUT, 1, part[i], target + c + i);
  }
#else
  for (; c < end; ++c) {
    const float y = TAIL(LOADV(T_IN, 1, source + c * a.in_c), n, h, w, c, 1);
    STOREV(T_OUT, 1, y, target + c * a.out_c);
  }
#endif
}
