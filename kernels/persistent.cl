// Turns the text of kernels into functions that a persistent kernel calls: one launch whose
// work-groups stay on the device and compute the work-groups of one kernel after the other, with
// pk_barrier_all() between kernels. A work-group consists of teams, each of the size of the called
// kernel's own work-group (PK_X, PK_Y, PK_Z); PK_SHARED is the kernel's local memory in bytes.
// Defines: PK_PTX (barriers in inline PTX; without it, one work-group with one team).

// Grid-wide barrier of all work-groups of the launch: writes before it are visible to all of them
// after it. `barrier_counter` counts arrivals; its value is `all` when every work-group has arrived.
#if PK_PTX
void pk_barrier_all(volatile __global uint* barrier_counter, uint all) {
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    atomic_inc(barrier_counter);
    uint came;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(came)
                   : "l"(barrier_counter)
                   : "memory");
    } while ((int)(came - all) < 0);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}
void pk_barrier_team(int team, int size) {
  if (size == 32)
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  else
    asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "r"(size) : "memory");
}
#endif

#undef WORK_GROUP
#undef SHARED
#define WORK_GROUP(x, y, z)
// Replaces KERNEL and its opening parenthesis.
#define PK_FUNCTION                                              \
  inline __attribute__((always_inline)) void FN(body)(           \
      const int4 pk_group, const int pk_item, const int pk_team, \
      __local uchar *const pk_shared,
#define SHARED(type, name, count)                                             \
  typedef char FN(name##_fits)[sizeof(type) * (count) <= PK_SHARED ? 1 : -1]; \
  __local type* const name = (__local type*)pk_shared
#if PK_PTX
#define PK_LIST __local
#undef RESTRICT
#define RESTRICT  // The constant cache does not see what other work-groups wrote.
#else
#define PK_LIST __global
#endif

#define get_group_id(d) ((d) == 0 ? pk_group.s0 : (d) == 1 ? pk_group.s1 : pk_group.s2)
#define get_local_id(d) \
  ((d) == 0 ? pk_item % PK_X : (d) == 1 ? pk_item / PK_X % PK_Y : pk_item / (PK_X * PK_Y))
#define get_local_size(d) ((d) == 0 ? PK_X : (d) == 1 ? PK_Y : PK_Z)
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) (pk_group.s3 * PK_X)  // correct for dimension 0 only
#if PK_PTX
#define barrier(flags) pk_barrier_team(pk_team, PK_X* PK_Y* PK_Z)
#else
#define barrier(flags)  // no work-items share memory here, see reject_persistent()
#endif
