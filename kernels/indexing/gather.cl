// Gathers elements by indices (Picking in gather.cpp explains how). Defines:
//   E        unsigned type of an element's size
//   INDEX    type of the indices
//   DIMS     number of loops, innermost first
//   INDEXED  number of data dimensions that indices address
//   GROUP    size of the work-group
typedef struct {
#include "kernels/indexing/gather_args.cl"
} FN(Args);

// Adds the indexed position in the data to `from`; returns false if an index is out of range.
static inline bool FN(locate)(__global const INDEX* at, const FN(Args) * g, int* from) {
  bool inside = true;
  for (int k = 0; k < INDEXED; ++k) {
    const int size = g->indexed_size[k];
    INDEX i = at[k * g->index_step];
    if (i < 0) i += size;
    const bool fits = i >= 0 && i < size;
    inside = inside && fits;
    *from += fits ? (int)i * g->indexed_stride[k] : 0;
  }
  return inside;
}

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(E, in), IN(INDEX, indices), OUT(E, out), const FN(Args) g) {
  const int runs = (g.size[0] + g.run - 1) / g.run;
  int rest = (int)get_global_id(0);
  const int begin = rest % runs * g.run;
  const int end = min(begin + g.run, g.size[0]);
  rest /= runs;
  int from = 0, to = 0, at = 0;
#pragma unroll
  for (int d = 1; d < DIMS; ++d) {
    const int i = rest % g.size[d];
    rest /= g.size[d];
    from += i * g.from[d];
    to += i * g.to[d];
    at += i * g.at[d];
  }
  if (rest > 0) return;  // past the last run

  __global const E* data = AT(in);
  __global const INDEX* index = AT(indices) + at;
  __global E* target = AT(out) + to;
  if (g.at[0] == 0) {
    const bool inside = FN(locate)(index, &g, &from);
    for (int i = begin; i < end; ++i)
      target[i * g.to[0]] = inside ? data[from + i * g.from[0]] : (E)0;
  } else {
    for (int i = begin; i < end; ++i) {
      int address = from + i * g.from[0];
      const bool inside = FN(locate)(index + i * g.at[0], &g, &address);
      target[i * g.to[0]] = inside ? data[address] : (E)0;
    }
  }
}
