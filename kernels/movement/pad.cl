// Pad: every output element is a copy of one input element, or `fill`. A tensor is five loops,
// innermost first; one work-item computes RUN positions of the second loop, each with all of the
// first or one vector of it. Defines:
//   E       unsigned type of an element's size
//   INNER   1: the first loop is padded as well
//   VECTOR  elements of a vector of the first loop if it is dense and not padded; the last vector
//           overlaps the one before it
//   ACROSS  1: neighbouring work-items have neighbouring vectors of the first loop
//   ALIGNED 1: vectors are aligned to their size
//   GROUP   size of the work-group

typedef struct {
#include "kernels/movement/pad_args.cl"
} FN(Args);

// Returns the input position for output position `at`; negative if there is none. Pads may be
// negative, which crops.
int FN(source)(int mode, int at, int begin, int size) {
  const int i = at - begin, ends = mode == 2;  // a reflection does not repeat the ends
  if (i >= 0 && i < size) return i;
  if (mode == 0) return -1;
  if (mode == 1) return clamp(i, 0, size - 1);
  return i < 0 ? ends - 1 - i : 2 * size - 1 - ends - i;
}

#define EV CAT(E, VECTOR)
#if ALIGNED
#define COPY(from, to) (*(__global EV*)(to) = *(__global const EV*)(from))
#define SET(v, to) (*(__global EV*)(to) = (EV)(v))
#else
#define COPY(from, to) CAT(vstore, VECTOR)(CAT(vload, VECTOR)(0, from), 0, to)
#define SET(v, to) CAT(vstore, VECTOR)((EV)(v), 0, to)
#endif

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(E, in), OUT(E, out), const FN(Args) a) {
  int rest = get_global_id(0);
  if (rest >= a.items) return;
  const E fill = (E)(((ulong)(uint)a.fill_high << 32) | (uint)a.fill_low);
#if ACROSS
  const int first = rest % a.vectors * VECTOR, last = min(first + VECTOR, a.size[0]);
  rest /= a.vectors;
#else
  const int first = 0, last = a.size[0];
#endif
  const int begin = rest % a.runs * a.run, end = min(begin + a.run, a.size[1]);
  rest /= a.runs;
  __global const E* from = AT(in);
  __global E* to = AT(out);
  bool outside = false;
  for (int d = 2; d < 5; ++d) {
    const int i = rest % a.size[d];
    rest /= a.size[d];
    const int s = FN(source)(a.mode, i, a.begin[d], a.in_size[d]);
    outside = outside || s < 0;
    from += max(s, 0) * a.in[d];
    to += i * a.out[d];
  }
  for (int i = begin; i < end; ++i) {
    const int s = FN(source)(a.mode, i, a.begin[1], a.in_size[1]);
    const bool none = outside || s < 0;
    __global const E* const row = from + max(s, 0) * a.in[1];
    __global E* const target = to + i * a.out[1];
#if INNER
    for (int c = first; c < last; ++c) {
      const int k = FN(source)(a.mode, c, a.begin[0], a.in_size[0]);
      target[c * a.out[0]] = none || k < 0 ? fill : row[k * a.in[0]];
    }
#elif VECTOR == 1
    for (int c = first; c < last; ++c) target[c * a.out[0]] = none ? fill : row[c * a.in[0]];
#else
    if (none) {
      for (int c = first; c < last; c += VECTOR) {
        const int k = min(c, a.size[0] - VECTOR);
        SET(fill, target + k);
      }
    } else {
      for (int c = first; c < last; c += VECTOR) {
        const int k = min(c, a.size[0] - VECTOR);
        COPY(row + k, target + k);
      }
    }
#endif
  }
}
