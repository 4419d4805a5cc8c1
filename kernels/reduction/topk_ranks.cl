// Selects the first K values of long rows, in order: a work-item counts how many values of the row
// come before its own, and stores it there if these are fewer than K. A work-group takes GROUP
// values of a row and meets all others in local memory. Defines: those of topk.cl but BY_INDEX.
#include "kernels/reduction/topk_values.cl"

typedef struct {
#include "kernels/reduction/topk_ranks_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T, in), OUT(T, out), OUT(INDEX, indices), const FN(Args) r) {
  SHARED(VALUE, block, GROUP);
  const int item = (int)get_local_id(0);
  const int own = (int)get_group_id(0) % r.parts * GROUP + item;
  int rest = (int)get_group_id(0) / r.parts;
  int from = 0, to = 0, at = 0;
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    const int i = rest % r.size[d];
    rest /= r.size[d];
    from += i * r.from[d];
    to += i * r.to[d];
    at += i * r.at[d];
  }
  __global const T* const row = AT(in) + from;
  const VALUE value = LOAD_VALUE(row + min(own, r.length - 1) * r.from_step);
  int rank = 0;
  for (int begin = 0; begin < r.length; begin += GROUP) {
    const int count = min(GROUP, r.length - begin);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) block[item] = LOAD_VALUE(row + (begin + item) * r.from_step);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < count; ++k) {
      const VALUE other = block[k];
      // Equal values keep their order.
      rank += BEFORE(other, value) || (begin + k < own && !BEFORE(value, other));
    }
  }
  if (own >= r.length || rank >= K) return;
  STORE_VALUE(value, AT(out) + to + rank * r.to_step);
  (AT(indices) + at)[rank * r.at_step] = (INDEX)own;
}
