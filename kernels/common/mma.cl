// Wraps the matrix instruction of a warp of 32 work-items. It multiplies 16 rows by 8 columns of 32
// bytes each: halves with float sums, or bytes with integer sums. Defines:
//   BYTES    the data are bytes; else halves
//   SHIFTED  for bytes: the kernel adds the channel's shift times the sum of the bytes to each sum
//   MMA_PTX  inline PTX; else local memory (`scratch`, 6 words a work-item) is used to emulate it
#if BYTES
#define D uchar
#define ELEMENT uchar
#define SUM int
#define PER_WORD 4
#else
#define D half
#define ELEMENT ushort
#define SUM float
#define PER_WORD 2
#endif

// Computes sum += a * b. The sums of a lane are in rows (pixels) lane / 4 and lane / 4 + 8, columns
// (channels) lane % 4 * 2 and the next one. a: word lane % 4 of both rows, then the words four
// further on; b: the same words of column lane / 4.
#if MMA_PTX
#define UNROLL _Pragma("unroll")
#define SCRATCH_PARAM
#define SCRATCH
#if BYTES
#define MMA_NAME "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"
#define MMA_SUM "+r"
#else
#define MMA_NAME "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define MMA_SUM "+f"
#endif
inline void FN(mma)(SUM* sum, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {
  SUM s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  asm(MMA_NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : MMA_SUM(s0), MMA_SUM(s1), MMA_SUM(s2), MMA_SUM(s3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}
#else
#define UNROLL
#define SCRATCH_PARAM , __local uint* scratch
#define SCRATCH , scratch
inline SUM FN(product)(uint a, uint b) {
#if BYTES
  const int4 x = convert_int4(as_uchar4(a)), w = convert_int4(as_char4(b));
  return x.s0 * w.s0 + x.s1 * w.s1 + x.s2 * w.s2 + x.s3 * w.s3;
#else
  const float2 x = vload_half2(0, (const half*)&a), w = vload_half2(0, (const half*)&b);
  return x.s0 * w.s0 + x.s1 * w.s1;
#endif
}
inline void FN(mma)(SUM* sum, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1 SCRATCH_PARAM) {
  const int lane = get_local_id(0);
  const uint own[6] = {a0, a2, a1, a3, b0, b1};
  for (int i = 0; i < 6; ++i) scratch[lane * 6 + i] = own[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; ++i)
    for (int t = 0; t < 4; ++t) {
      __local const uint* a = scratch + (lane / 4 * 4 + t) * 6 + i / 2 * 2;
      __local const uint* b = scratch + ((lane % 4 * 2 + i % 2) * 4 + t) * 6 + 4;
      sum[i] += FN(product)(a[0], b[0]) + FN(product)(a[1], b[1]);
    }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

#if SHIFTED
#define SHIFTS IN(int, shifts),
// Returns four bytes of 1, with zeros from byte `left` on: factors that sum up bytes.
inline uint FN(ones)(int left) {
  return left >= 4 ? 0x01010101 : left <= 0 ? 0 : 0x01010101 >> (8 * (4 - left));
}
#else
#define SHIFTS
#endif
