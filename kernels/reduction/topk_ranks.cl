// Selects the first K values of long rows, in order: a work-item counts how many values of the row
// come before its own, and stores it there if these are fewer than K. A work-group takes GROUP
// values of a row and meets all others in local memory, BLOCK at a time, as unsigned numbers: a value
// with a smaller number comes first. Defines: BLOCK, a multiple of GROUP, and those of topk.cl but
// BY_INDEX.
#include "kernels/reduction/topk_values.cl"

typedef struct {
#include "kernels/reduction/topk_ranks_args.cl"
} FN(Args);

// Counts the numbers `from` to `to` of the block of which TEST is true, four at a time.
#define COUNT(from, to, TEST)                   \
  for (int k = (from) / 4; k < (to) / 4; ++k) { \
    const uint4 other = block[k];               \
    counts -= (TEST);                           \
  }

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T, in), OUT(T, out), OUT(INDEX, indices), const FN(Args) r) {
  SHARED(uint4, block, BLOCK / 4);
  __local uint* const numbers = (__local uint*)block;
  const int item = (int)get_local_id(0);
  const int first = (int)get_group_id(0) % r.parts * GROUP, own = first + item;
  int rest = (int)get_group_id(0) / r.parts;
  FIND_ROW
  __global const T* const row = AT(in) + from;
  const VALUE value = LOAD_VALUE(row + min(own, r.length - 1) * r.from_step);
  const uint mine = FN(number)(value);
  int4 counts = (int4)(0);
  for (int begin = 0; begin < r.length; begin += BLOCK) {
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = item; k < BLOCK; k += GROUP) {
      const int i = begin + k;
      const uint number = FN(number)(LOAD_VALUE(row + min(i, r.length - 1) * r.from_step));
      numbers[k] = i < r.length ? number : LAST;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Equal values keep their order. Those of this work-group are compared one by one.
    const int before = clamp(first - begin, 0, BLOCK),
              after = clamp(first + GROUP - begin, 0, BLOCK);
    COUNT(0, before, other <= mine)
    for (int k = before; k < after; ++k)
      counts.x += numbers[k] < mine || (numbers[k] == mine && k - before < item);
    COUNT(after, BLOCK, other < mine)
  }
  const int rank = counts.x + counts.y + counts.z + counts.w;
  if (own >= r.length || rank >= K) return;
  STORE_VALUE(value, AT(out) + to + rank * r.to_step);
  (AT(indices) + at)[rank * r.at_step] = (INDEX)own;
}
