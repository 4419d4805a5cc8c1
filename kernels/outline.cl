// Turns a kernel's text into a function, which the kernel then only calls (see instantiate()). PoCL
// compiles a kernel's body three times, for three kinds of callers, but a function once. Precedes
// kernels whose work-groups have one work-item.
#ifdef POCL_DEVICE_ADDRESS_BITS
#undef WORK_GROUP
#define WORK_GROUP(x, y, z)
// Replaces KERNEL and its opening parenthesis.
#define OUTLINE static __attribute__((noinline)) void FN(body)(const int4 outline_group,
#define get_group_id(d) \
  ((d) == 0 ? outline_group.s0 : (d) == 1 ? outline_group.s1 : outline_group.s2)
#define get_local_id(d) 0
#define get_local_size(d) 1
#define get_global_id(d) get_group_id(d)
#define get_global_size(d) outline_group.s3  // correct for dimension 0 only
#define barrier(flags)
#else
#define OUTLINE KERNEL(
#endif
