// The persistent kernel: runs the launches of a list one after the other (see persistent.cl).
// b0, b1, b2 are the buffers that contain all tensors. `barriers_passed` is the value of the
// arrival counter `barrier_counter` before this launch. Defines:
//   PK_NAME               name of the kernel
//   PK_ITEMS              work-items of a work-group
//   PK_ROOM               maximum number of words of the list
//   PK_LOCAL              bytes of local memory for all teams
//   PK_LENGTH, PK_GROUPS  positions, in the entry of a launch, of its length and of its number of
//                         work-groups
//   PK_CASES              calls the kernel of an entry for work-groups `me` to `groups`, in steps
//                         of `all`, or for all of them without PK_PTX
#undef get_group_id
#undef get_local_id
#undef get_local_size
#undef get_global_id
#undef get_global_size
#undef barrier

#if PK_PTX
__attribute__((reqd_work_group_size(PK_ITEMS, 1, 1))) __kernel void PK_NAME(
    __global uchar* b0, __global uchar* b1, __global uchar* b2, __global const int* work, int words,
    __global uint* barrier_counter, uint barriers_passed) {
  __local int list[PK_ROOM];
  __local uchar shared[PK_LOCAL] __attribute__((aligned(64)));
  const int item = get_local_id(0), me = get_group_id(0), all = get_num_groups(0);
  for (int i = item; i < words; i += PK_ITEMS) list[i] = work[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = 0; at < words; at += list[at + PK_LENGTH]) {
    if (at > 0) {
      barriers_passed += all;
      pk_barrier_all(barrier_counter, barriers_passed);
    }
    const int groups = list[at + PK_GROUPS];
    switch (list[at]) { PK_CASES }
  }
}
#else
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void PK_NAME(
    __global uchar* b0, __global uchar* b1, __global uchar* b2, __global const int* list, int words,
    __global uint* barrier_counter, uint barriers_passed) {
  for (int at = 0; at < words; at += list[at + PK_LENGTH]) switch (list[at]) {
      PK_CASES
    }
}
#endif
