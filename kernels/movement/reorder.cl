// Copies a tensor whose innermost dimensions differ in input and output (NCHW to NHWC and similar),
// optionally converting the type. Each work-item copies a block: tile_a along the dimension that is
// dense in the output, tile_b along the one that is dense in the input, so that both sides use
// whole cache lines. Defines:
//   FROM, TO         types of the elements
//   LOAD_ONE(p)      reads an element
//   STORE_ONE(v, p)  writes it, converted
//   DIMS             number of outer loops
//   GROUP            size of the work-group

typedef struct {
#include "kernels/movement/reorder_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(FROM, in), OUT(TO, out), const FN(Args) walk) {
  const int tiles_a = (walk.size_a + walk.tile_a - 1) / walk.tile_a;
  const int tiles_b = (walk.size_b + walk.tile_b - 1) / walk.tile_b;
  int rest = (int)get_global_id(0);
  const int a0 = rest % tiles_a * walk.tile_a;
  rest /= tiles_a;
  const int b0 = rest % tiles_b * walk.tile_b;
  rest /= tiles_b;
  int from = a0 * walk.from_a + b0, to = a0 + b0 * walk.to_b;
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    const int i = rest % walk.size[d];
    rest /= walk.size[d];
    from += i * walk.from[d];
    to += i * walk.to[d];
  }
  if (rest > 0) return;

  __global const FROM* source = AT(in) + from;
  __global TO* target = AT(out) + to;
  const int a_end = min(walk.tile_a, walk.size_a - a0), b_end = min(walk.tile_b, walk.size_b - b0);
  for (int b = 0; b < b_end; ++b)
    for (int a = 0; a < a_end; ++a)
      STORE_ONE(LOAD_ONE(source + a * walk.from_a + b), target + a + b * walk.to_b);
}
