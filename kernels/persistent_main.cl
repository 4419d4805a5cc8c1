// The persistent kernel: runs the launches of a list one after the other (see persistent.cl).
// b0, b1, b2 are the buffers that contain all tensors. Defines:
//   PK_NAME               name of the kernel
//   PK_LENGTH, PK_GROUPS  positions, in the entry of a launch, of its length and of its number of
//                         work-groups
//   PK_CASES              calls the kernel of an entry for its work-groups `from` to `to`
//   PK_CORES              several work-groups of one work-item may take part, see below
//   PK_HEAD, PK_STRIDE    with PK_CORES: counters of the launch, and of a kind for the list's entries
//   PK_MEET               with PK_CORES: number of words that makes work-groups look for each other
#undef get_group_id
#undef get_local_id
#undef get_local_size
#undef get_global_id
#undef get_global_size
#undef barrier

#if PK_CORES
// On a CPU there are any number of work-groups of one work-item, each on a core of its own if
// enough cores are free. For each launch of the list a group takes chunks of its own part of the
// launch's work-groups, then chunks that others have left of their parts, and waits until all
// chunks are computed. No group waits for one that has not begun: the driver may run the groups one
// after the other on one core, and the first one then computes everything. A group finishes a chunk
// without any other group.
//
// `counters`, all 0 before a launch and after it: PK_HEAD words (the groups that left; for PK_MEET
// those that came and those that saw all others; the groups that sleep), then for each launch of
// the list, up to PK_STRIDE, its computed work-groups; then for each group and launch the chunks
// taken of the group's part: these have a cache line of their own, since mostly one core writes
// them. The last group to leave resets all counters, as no other group reads them any more.
//
// Order in memory: a group adds what it computed with release, after its stores, and goes on when it
// reads the full number with acquire. All additions to a counter are read-modify-writes, so that the
// value read last synchronizes with each of them, and every store of the launches before is visible.
#define PK_SLEEPERS 3           // counter of the groups that sleep
#define PK_CHUNKS 8             // chunks of a group's part; one core may be late by one of them
#define PK_MEET_PAUSES 4000000  // 80 to 200 ms
#define PK_PAUSES 1000          // about 50 us of spinning before a group sleeps

uint pk_add(volatile __global uint* counter, uint number) {
  return __atomic_fetch_add(counter, number, __ATOMIC_ACQ_REL);
}
uint pk_load(volatile __global const uint* counter) {
  return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
void pk_pause() {
#ifdef __x86_64__
  __asm__ volatile("pause");
#endif
}
// Calls Linux's futex: sleeps while the counter has this value, for at most 10 ms, or wakes all
// sleepers. If other programs want the cores, a thread that slept gets its core back sooner than
// one that spun.
void pk_futex(volatile __global uint* counter, int wake, uint value) {
#ifdef __x86_64__
  const long limit[2] = {0, 10000000};
  long result = 202;
  __asm__ volatile("mov %[limit], %%r10\n\tsyscall"
                   : "+a"(result)
                   : "D"(counter), "S"((long)(wake ? 129 : 128)),
                     "d"((long)value), [limit] "r"(limit)
                   : "rcx", "r11", "r10", "memory");
#endif
}
// Waits until `number` work-groups are computed.
void pk_wait(volatile __global uint* computed, uint number, volatile __global uint* sleepers) {
  for (int pauses = 0; pk_load(computed) < number; ++pauses) {
    if (pauses < PK_PAUSES) {
      pk_pause();
      continue;
    }
    // Counts this group as a sleeper before the check. The group that computes the last work-groups
    // adds them before it reads `sleepers`, so either it sees this group and wakes it, or this
    // group reads the full number.
    pk_add(sleepers, 1);
    const uint now = pk_load(computed);
    if (now < number) pk_futex(computed, 0, now);
    pk_add(sleepers, -1);
  }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void PK_NAME(
    __global uchar* b0, __global uchar* b1, __global uchar* b2, __global const int* list, int words,
    __global uint* counters) {
  const int me = get_group_id(0), all = get_num_groups(0);
  if (words == PK_MEET) {
    pk_add(counters + 1, 1);
    int pauses = 0;
    while (pk_load(counters + 1) < all && pauses < PK_MEET_PAUSES) {
      pk_pause();
      ++pauses;
    }
    if (pk_load(counters + 1) == all && pauses < PK_MEET_PAUSES) pk_add(counters + 2, 1);
    return;
  }
  __global uint* computed = counters + PK_HEAD;
  for (int at = 0; at < words; at += list[at + PK_LENGTH], ++computed) {
    const int groups = list[at + PK_GROUPS];
    if (all == 1) {
      const int from = 0, to = groups;
      switch (list[at]) { PK_CASES }
      continue;
    }
    const int chunk = max(groups / (all * PK_CHUNKS), 1);
    int mine = 0;
    for (int i = 0; i < all; ++i) {
      const int owner = (me + i) % all;
      const int begin = (long)groups * owner / all, end = (long)groups * (owner + 1) / all;
      __global uint* const taken = computed + PK_STRIDE * (1 + owner);
      while (begin + (int)pk_load(taken) * chunk < end) {
        const int from = begin + (int)pk_add(taken, 1) * chunk, to = min(from + chunk, end);
        if (from >= end) break;
        switch (list[at]) { PK_CASES }
        mine += to - from;
      }
    }
    if (mine > 0 && pk_add(computed, mine) + mine == groups && pk_load(counters + PK_SLEEPERS) > 0)
      pk_futex(computed, 1, INT_MAX);
    pk_wait(computed, groups, counters + PK_SLEEPERS);
  }
  if (all > 1 && pk_add(counters, 1) == all - 1)
    for (int i = 0; i < PK_HEAD + PK_STRIDE * (1 + all); ++i) counters[i] = 0;
}
#else
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void PK_NAME(
    __global uchar* b0, __global uchar* b1, __global uchar* b2, __global const int* list, int words,
    __global uint* counters) {
  for (int at = 0; at < words; at += list[at + PK_LENGTH]) {
    const int from = 0, to = list[at + PK_GROUPS];
    switch (list[at]) { PK_CASES }
  }
}
#endif
