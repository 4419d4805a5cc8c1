// Strided copy. Defines:
//   FROM, TO  types of the elements; if equal, any type of their size
//   CONVERT   1: they differ, and values are converted
//   DIMS      number of loops, innermost first
//   AXES      number of bounded axes
//   FILL      1: elements out of bounds are set to 0, else left unchanged
//   GROUP     size of the work-group
#if CONVERT
#define LOAD_FROM(p) CAT(LOADS_, FROM)(p)
#define STORE_TO(v, p) CAT(STORES_, TO)(v, p)
#define LOADS_float(p) (*(p))
#define LOADS_half(p) vload_half(0, p)
#define LOADS_int(p) (*(p))
#define LOADS_uchar(p) ((int)*(p))
#define LOADS_char(p) ((int)*(p))
#define STORES_float(v, p) (*(p) = convert_float(v))
#define STORES_half(v, p) vstore_half_rte(convert_float(v), 0, p)
#define STORES_int(v, p) (*(p) = CAT(SATURATE_, FROM)(int, v))
#define STORES_uchar(v, p) (*(p) = CAT(SATURATE_, FROM)(uchar, v))
#define STORES_char(v, p) (*(p) = CAT(SATURATE_, FROM)(char, v))
#define SATURATE_float(type, v) CAT(CAT(convert_, type), _sat_rtz)(v)
#define SATURATE_half(type, v) CAT(CAT(convert_, type), _sat_rtz)(v)
#define SATURATE_int(type, v) CAT(convert_, type)(v)
#define SATURATE_uchar(type, v) CAT(convert_, type)(v)
#define SATURATE_char(type, v) CAT(convert_, type)(v)
#define MOVE(target, source) STORE_TO(LOAD_FROM(&(source)), &(target))
#else
#define MOVE(target, source) (target) = (source)
#endif

typedef struct {
#include "kernels/movement/strided_copy_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(FROM, in), OUT(TO, out), const FN(Args) copy) {
  const int runs = (copy.size[0] + copy.run - 1) / copy.run;
  int rest = (int)get_global_id(0);
  const int begin = rest % runs * copy.run;
  const int end = min(begin + copy.run, copy.size[0]);
  rest /= runs;
  int from = copy.from_start, to = copy.to_start;
#if AXES > 0
  int position[AXES];
  for (int a = 0; a < AXES; ++a) position[a] = copy.axis[a].start;
#endif
#pragma unroll
  for (int d = 1; d < DIMS; ++d) {
    const int i = rest % copy.size[d];
    rest /= copy.size[d];
    from += i * copy.from[d];
    to += i * copy.to[d];
#if AXES > 0
    for (int a = 0; a < AXES; ++a) position[a] += i * copy.axis[a].along[d];
#endif
  }
  if (rest > 0) return;  // past the last run of elements

  __global const FROM* source = AT(in) + from;
  __global TO* target = AT(out) + to;
#if AXES > 0
  for (int i = begin; i < end; ++i) {
    bool inside = true;
    for (int a = 0; a < AXES; ++a) {
      const int p = position[a] + i * copy.axis[a].along[0];
      inside = inside && p >= 0 && p < copy.axis[a].limit;
    }
    if (inside)
      MOVE(target[i * copy.to[0]], source[i * copy.from[0]]);
    else if (FILL)
      target[i * copy.to[0]] = 0;
  }
#else
  if (copy.from[0] == 1 && copy.to[0] == 1)
    for (int i = begin; i < end; ++i) MOVE(target[i], source[i]);
  else
    for (int i = begin; i < end; ++i) MOVE(target[i * copy.to[0]], source[i * copy.from[0]]);
#endif
}
