// Selects the first K values of rows, in order, by a work-group for each row. A value's key is its number
// and behind it its place, so that no two keys are equal. The work-group narrows down, bit by bit, a bound
// that K keys of the row do not exceed, and then ranks only these. Each work-item keeps the keys of
// PER_ITEM values, GROUP apart, in registers. Defines besides those of topk.cl but BY_INDEX:
//   PER_ITEM             values of a work-item
//   PLACE_BITS           bits of a place
//   NUMBER_BITS          bits of a number in which values of T can differ
//   LANES                work-items that add up counts, at most GROUP
#include "kernels/reduction/topk_values.cl"

typedef struct {
#include "kernels/reduction/topk_args.cl"
} FN(Args);

#define BITS (NUMBER_BITS + PLACE_BITS)
#define EACH_KEY(ACTION) \
  _Pragma("unroll") for (int k = 0; k < PER_ITEM; ++k) { ACTION }

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T, in), OUT(T, out), OUT(INDEX, indices), const FN(Args) r) {
  SHARED(ulong, first, K);
  SHARED(int, counts, GROUP);
  SHARED(int, sums, BITS);
  SHARED(int, taken, 1);
  const int item = (int)get_local_id(0);
  int rest = (int)get_group_id(0);
  FIND_ROW
  __global const T* const row = AT(in) + from;
  if (item == 0) *taken = 0;
  for (int i = item; i < BITS; i += GROUP) sums[i] = 0;
  ulong keys[PER_ITEM];
  EACH_KEY(const int place = k * GROUP + item;
           const uint number = FN(number)(LOAD_VALUE(row + min(place, r.length - 1) * r.from_step));
           keys[k] = (ulong)((place < r.length ? number : LAST) >> (32 - NUMBER_BITS))
                         << PLACE_BITS |
                     place;)
  // All bits below the next one to decide are set.
  ulong bound = ((ulong)1 << BITS) - 1, bit = (bound >> 1) + 1;
  int count, step = 0;
  do {
    const ulong lower = bound ^ bit;
    int own = 0;
    EACH_KEY(own += keys[k] <= lower;)
    counts[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < LANES) {
      int sum = 0;
      for (int k = item; k < GROUP; k += LANES) sum += counts[k];
      atomic_add(&sums[step], sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    count = sums[step++];
    if (count >= K) bound = lower;
    bit >>= 1;
  } while (bit > 0 && count != K);
  EACH_KEY(if (keys[k] <= bound) first[atomic_inc(taken)] = keys[k];)
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < K; i += GROUP) {
    const ulong key = first[i];
    int rank = 0;
#pragma unroll 4
    for (int k = 0; k < K; ++k) rank += first[k] < key;
    const int place = (int)(key & (((ulong)1 << PLACE_BITS) - 1));
    STORE_VALUE(LOAD_VALUE(row + place * r.from_step), AT(out) + to + rank * r.to_step);
    (AT(indices) + at)[rank * r.at_step] = (INDEX)place;
  }
}
