// Selects the first K values of each row in sorted order, in registers. One work-item processes one
// row. Defines besides K:
//   T, INTEGER  type of the values: int if INTEGER is 1, else a storage type of floats
//   INDEX       type of the positions
//   LARGEST     1: largest first
//   BY_INDEX    1: writes the selected values in the order of the row
//   DIMS        number of loops over the rows
//   GROUP       size of the work-group
#include "kernels/reduction/topk_values.cl"

typedef struct {
#include "kernels/reduction/topk_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T, in), OUT(T, out), OUT(INDEX, indices), const FN(Args) r) {
  int rest = (int)get_global_id(0);
  FIND_ROW
  if (rest > 0) return;  // past the last row

  VALUE best[K];
  int where[K];  // -1: empty
  for (int k = 0; k < K; ++k) {
    best[k] = 0;
    where[k] = -1;
  }
  for (int i = 0; i < r.length; ++i) {
    VALUE v = LOAD_VALUE(AT(in) + from + i * r.from_step);
    int index = i;
    bool placed = false;  // true from the entry that v precedes: later entries move down by one
#pragma unroll
    for (int k = 0; k < K; ++k) {
      placed = placed || where[k] < 0 || BEFORE(v, best[k]);
      if (placed) {
        const VALUE other = best[k];
        const int other_index = where[k];
        best[k] = v;
        where[k] = index;
        v = other;
        index = other_index;
      }
    }
  }
#if BY_INDEX
  for (int i = 1; i < K; ++i)
    for (int k = i; k > 0 && where[k] < where[k - 1]; --k) {
      const int index = where[k];
      where[k] = where[k - 1];
      where[k - 1] = index;
      const VALUE v = best[k];
      best[k] = best[k - 1];
      best[k - 1] = v;
    }
#endif
  for (int k = 0; k < K; ++k) {
    STORE_VALUE(best[k], AT(out) + to + k * r.to_step);
    (AT(indices) + at)[k * r.at_step] = (INDEX)where[k];
  }
}
