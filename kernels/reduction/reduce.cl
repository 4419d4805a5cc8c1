// Reductions over any dimensions. The GROUP work-items of a work-group share the innermost reduced
// loop; where GROUP is 1, each of TOGETHER work-items has a loop of its own. Defines:
//   V, GROUP, TOGETHER               elements of a vector; work-group
//   ALONG                            0: GROUP work-items compute V elements of the output, whose lanes
//                                    are neighbouring outputs, dense in input and output; 1: one
//                                    element, whose lanes are neighbours in the innermost reduced
//                                    loop, dense there
//   IN_T, OUT_T                      types of the elements
//   ACC                              type of the sums: float, or int (with V = 1)
//   LOAD_ONE(p), STORE_ONE(v, p)     read and write an element
//   LOAD                             reads vectors, aligned or not
//   FIRST, TAKE(acc, x), JOIN(a, b)  the reduction: start, next element, two parts
//   FINISH(acc)                      the result; may use `scale`

typedef struct {
#include "kernels/reduction/reduce_args.cl"
} FN(Args);

#define ACCV CAT(ACC, V)
#if V > 1
#define LOAD_LANES(p) LOAD(IN_T, V, p)
#else
#define LOAD_LANES(p) LOAD_ONE(p)
#endif

WORK_GROUP(GROUP* TOGETHER, 1, 1)
KERNEL(IN(IN_T, in), OUT(OUT_T, out), const FN(Args) walk TAIL_PARAMS) {
#if GROUP > 1
  const int me = (int)get_local_id(0);
  int rest = (int)get_group_id(0);
#else
  const int me = 0;
  int rest = (int)get_global_id(0);
  if (rest >= walk.items) return;
#endif
  const int lanes = ALONG ? 1 : V;
  const int blocks = (walk.kept[0] + lanes - 1) / lanes;
  // The last vector overlaps the one before it.
  const int c = min(rest % blocks * lanes, walk.kept[0] - lanes);
  rest /= blocks;
  const int w = rest % walk.kept[1];
  rest /= walk.kept[1];
  const int h = rest % walk.kept[2], n = rest / walk.kept[2];
  __global const IN_T* source = AT(in) + c * walk.kept_from[0] + w * walk.kept_from[1] +
                                h * walk.kept_from[2] + n * walk.kept_from[3];

  ACCV acc = FIRST;
#if ALONG
  ACC single = FIRST;
  const int whole = walk.reduced[0] / V * V;
#endif
  for (int k = 0; k < walk.reduced[2]; ++k)
    for (int j = 0; j < walk.reduced[1]; ++j) {
      __global const IN_T* row = source + k * walk.reduced_from[2] + j * walk.reduced_from[1];
#if ALONG
      for (int i = me * V; i < whole; i += GROUP * V) {
        const ACCV x = LOAD_LANES(row + i);
        acc = TAKE(acc, x);
      }
      for (int i = whole + me; i < walk.reduced[0]; i += GROUP) {
        const ACC x = LOAD_ONE(row + i);
        single = TAKE(single, x);
      }
#else
      for (int i = me; i < walk.reduced[0]; i += GROUP) {
        const ACCV x = LOAD_LANES(row + i * walk.reduced_from[0]);
        acc = TAKE(acc, x);
      }
#endif
    }
#if ALONG
  float part[V];
  STOREV_PRIVATE(V, acc, part);
  for (int i = 0; i < V; ++i) single = JOIN(single, part[i]);
#define RESULT single
#else
#define RESULT acc
#endif
#if GROUP > 1
#if ALONG
  SHARED(ACC, scratch, GROUP);
#else
  SHARED(ACCV, scratch, GROUP);
#endif
  for (int step = GROUP / 2; step > 0; step /= 2) {
    scratch[me] = RESULT;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < step) RESULT = JOIN(RESULT, scratch[me + step]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (me != 0) return;
#endif
  __global OUT_T* target = AT(out) + c * walk.kept_to[0] + w * walk.kept_to[1] +
                           h * walk.kept_to[2] + n * walk.kept_to[3];
  const float scale = walk.scale;
  RESULT = FINISH(RESULT);
#if ALONG || V == 1
  STORE_ONE(TAIL(RESULT, n, h, w, c, 1), target);
#else
  STOREV(OUT_T, V, TAIL(RESULT, n, h, w, c, V), target);
#endif
}
