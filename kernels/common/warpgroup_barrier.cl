// Barriers in local memory for kernels of warpgroup matrix instructions in PTX, and copies that arrive
// at them. A stage of tiles has two barriers: their phases end when it is full, and when all warps have
// multiplied it. The phases are numbered modulo 2.
#if WGMMA_PTX
#define FULL(stage) (barriers + (stage)*16)
#define FREE(stage) (barriers + (stage)*16 + 8)
inline void FN(make_barrier)(uint barrier, uint arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes the initialised barriers visible to the asynchronous copies.
#define PUBLISH_BARRIERS asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
inline void FN(arrive)(uint barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
inline void FN(await)(uint barrier, uint phase) {
  asm volatile(
      "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
      "@done bra DONE; bra AGAIN; DONE: }" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
// Starts to copy a step's weights, which have this many bytes.
inline void FN(copy_weights)(uint to, __global const uint4* from, uint barrier, uint bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%2], %3; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::
          "r"(to),
      "l"(from), "r"(barrier), "r"(bytes)
      : "memory");
}
#endif
