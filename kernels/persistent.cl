// Turns the text of kernels into functions that a persistent kernel calls: one launch that computes
// the work-groups of one kernel after the other. A call computes one work-item (`pk_item`) of one
// work-group of the called kernel's own size (PK_X, PK_Y, PK_Z).

#undef WORK_GROUP
#define WORK_GROUP(x, y, z)
// Replaces KERNEL and its opening parenthesis.
#define PK_FUNCTION                                    \
  inline __attribute__((always_inline)) void FN(body)( \
      const int4 pk_group, const int pk_item,

#define get_group_id(d) ((d) == 0 ? pk_group.s0 : (d) == 1 ? pk_group.s1 : pk_group.s2)
#define get_local_id(d) \
  ((d) == 0 ? pk_item % PK_X : (d) == 1 ? pk_item / PK_X % PK_Y : pk_item / (PK_X * PK_Y))
#define get_local_size(d) ((d) == 0 ? PK_X : (d) == 1 ? PK_Y : PK_Z)
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) (pk_group.s3 * PK_X)  // correct for dimension 0 only
#define barrier(flags)  // no work-items share memory here, see reject_persistent()
