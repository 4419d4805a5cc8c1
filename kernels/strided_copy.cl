// Copies between strided places. E: unsigned type of an element's size; DIMS loops, innermost first; AXES bounded axes;
// FILL: out of bounds is set to 0, else left alone.
typedef struct {
  int size[DIMS], from[DIMS], to[DIMS];
  int from_start, to_start, run;
#if AXES > 0
  struct {
    int start, limit, along[DIMS];
  } axis[AXES];
#endif
} FN(Copy);

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
KERNEL(IN(E, in), OUT(E, out), const FN(Copy) copy) {
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
  if (rest > 0) return;  // beyond the last run

  __global const E *source = AT(in) + from;
  __global E *target = AT(out) + to;
#if AXES > 0
  for (int i = begin; i < end; ++i) {
    bool inside = true;
    for (int a = 0; a < AXES; ++a) {
      const int p = position[a] + i * copy.axis[a].along[0];
      inside = inside && p >= 0 && p < copy.axis[a].limit;
    }
    if (inside)
      target[i * copy.to[0]] = source[i * copy.from[0]];
    else if (FILL)
      target[i * copy.to[0]] = 0;
  }
#else
  if (copy.from[0] == 1 && copy.to[0] == 1)
    for (int i = begin; i < end; ++i) target[i] = source[i];
  else
    for (int i = begin; i < end; ++i) target[i * copy.to[0]] = source[i * copy.from[0]];
#endif
}
