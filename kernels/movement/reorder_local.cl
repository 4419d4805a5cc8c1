// Copies a tensor as reorder.cl does, on a device whose work-items share memory: a work-group reads
// tiles of TILE x TILE elements along the dimension that is dense in the input, and writes them along
// the one that is dense in the output. Defines:
//   FROM, TO         types of the elements
//   HELD             the type in which local memory holds them
//   LOAD_ONE(p)      reads an element
//   STORE_ONE(v, p)  writes it, converted
//   DIMS             number of outer loops
//   TILE, ROWS       the work-group has TILE x ROWS work-items; ROWS divides TILE

typedef struct {
#include "kernels/movement/reorder_args.cl"
} FN(Args);

WORK_GROUP(TILE, ROWS, 1)
KERNEL(IN(FROM, in), OUT(TO, out), const FN(Args) walk) {
  SHARED(HELD, tile, TILE * (TILE + 1));  // rows of odd length, so that columns lie in all banks
  const int tiles_a = (walk.size_a + TILE - 1) / TILE;
  const int tiles_b = (walk.size_b + TILE - 1) / TILE;
  int rest = (int)get_group_id(0);
  const int a0 = rest % tiles_a * TILE;
  rest /= tiles_a;
  const int b0 = rest % tiles_b * TILE;
  rest /= tiles_b;
  __global const FROM* source = AT(in) + a0 * walk.from_a + b0;
  __global TO* target = AT(out) + a0 + b0 * walk.to_b;
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    const int i = rest % walk.size[d];
    rest /= walk.size[d];
    source += i * walk.from[d];
    target += i * walk.to[d];
  }
  const int x = get_local_id(0), y = get_local_id(1);
  const int a_end = walk.size_a - a0, b_end = walk.size_b - b0;
  for (int a = y; a < TILE; a += ROWS) {
    if ((a < a_end) & (x < b_end))
      tile[a * (TILE + 1) + x] = LOAD_ONE(source + a * walk.from_a + x);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = y; b < TILE; b += ROWS) {
    if ((b < b_end) & (x < a_end)) STORE_ONE(tile[x * (TILE + 1) + b], target + x + b * walk.to_b);
  }
}
