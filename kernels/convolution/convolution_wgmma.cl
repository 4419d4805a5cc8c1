// Convolution of halves by the warpgroup matrix instructions of NVIDIA's compute capability 9.0
// (wgmma): a work-group multiplies 64 * WARPGROUPS pixels by COLUMNS output channels. Both tiles
// lie in local memory, which asynchronous copies fill STAGES - 1 steps ahead. A step has four
// chunks of 8 halves (16 bytes) per row: 32 input channels of one tap with WHOLE_STEPS, else any
// four consecutive chunks. Chunk c of row r lies at r * 4 + (c ^ (r / 2) % 4), the 64-byte swizzle
// of the matrix descriptors, which avoids bank conflicts of copies and multiplications. Chunks
// outside the input, and past the last tap, are zeros. The weights are packed as [block of
// channels][step][row][chunk], swizzled; a block's channels are ordered as in convolution_mma.cl: a
// work-item ends up with VECTOR adjacent channels of a pixel. Defines besides T (of the output),
// VECTOR, COLUMNS, WARPGROUPS and STAGES:
//   WHOLE_STEPS           the input channels are a multiple of 32. The taps of 32 channels are then
//                         adjacent steps, since they read pixels still in the first-level cache
//   POINTWISE             1x1; input and output are each one long row of pixels
//   FLAT_TAIL             the tail's operands are long rows of pixels as well
//   ALIGNED               an output vector lies at a multiple of its size
//   WGMMA_PTX             PTX (see engine/ocl/marked_ptx.h); else plain C computes the same values
//   MULTIPLY(sums, a, b)  with WGMMA_PTX: sums += tile a * tile b, for descriptors a and b

typedef struct {
#include "kernels/convolution/convolution_wgmma_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define ITEMS (128 * WARPGROUPS)
#define PIXELS (64 * WARPGROUPS)  // pixels of a tile
#define STAGE ((PIXELS + COLUMNS) * 4)
#define VECTORS (COLUMNS / (4 * VECTOR))
#define SWIZZLED(row, chunk) ((row)*4 + ((chunk) ^ (((row) >> 1) & 3)))

#if WGMMA_PTX
#define UNROLL _Pragma("unroll")
// Copies 16 bytes, or zeros, from global to local memory. Pixels stay in the first-level cache for
// the other taps; weights bypass it.
inline void FN(copy_pixels)(__local uint4* to, __global const uint4* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(size_t)to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
inline void FN(copy_weights)(__local uint4* to, __global const uint4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint)(size_t)to), "l"(from)
               : "memory");
}
#define COMMIT_COPIES asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT(n) WAIT_(n)
#define PUBLISH asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#if STAGES == 2
#define COPIES_LEFT 0
#elif STAGES == 3
#define COPIES_LEFT 1
#else
#define COPIES_LEFT 2
#endif
// Rows of 64 bytes, 8 rows (512 bytes) apart; 64-byte swizzle.
inline ulong FN(descriptor)(__local const uint4* tile) {
  return (ulong)(((uint)(size_t)tile >> 4) & 0x3fff) | (ulong)1 << 16 | (ulong)(512 >> 4) << 32 |
         (ulong)2 << 62;
}
#else
#define UNROLL
inline void FN(copy_pixels)(__local uint4* to, __global const uint4* from, bool inside) {
  *to = inside ? *from : (uint4)(0);
}
inline void FN(copy_weights)(__local uint4* to, __global const uint4* from) { *to = *from; }
#define COMMIT_COPIES
#define WAIT(n)
#define PUBLISH
inline float FN(half_of)(__local const uint4* chunk, int i) {
  return vload_half(i, (__local const half*)chunk);
}
#endif

WORK_GROUP(ITEMS, 1, 1)
KERNEL(IN(uint4, in), IN(uint4, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  __local uint4 tiles[STAGES * STAGE] __attribute__((aligned(1024)));
  const int item = get_local_id(0), lane = item % 32;
  const int tile = (int)get_group_id(0) / a.blocks;
  const int block = (int)get_group_id(0) - tile * a.blocks;

  // This work-item copies one chunk of two rows of pixels, and of some rows of weights.
  const int chunk = item % 4, row = item / 4;
  __global const uint4* const data = AT(in);
  int at[2];
#if POINTWISE
  UNROLL for (int i = 0; i < 2; ++i) {
    at[i] = min(tile * PIXELS + row + i * (PIXELS / 2), a.pixels - 1) * a.in_w;
  }
  int channel = chunk;
#define INSIDE(i) (channel < a.chunks)
#define PLACE(i) at[i] + channel
#define NEXT channel += 4
#else
  int iy[2], ix[2];
  UNROLL for (int i = 0; i < 2; ++i) {
    const int pixel = min(tile * PIXELS + row + i * (PIXELS / 2), a.pixels - 1);
    const int line = pixel / a.ow, n = line / a.oh;
    iy[i] = (line - n * a.oh) * a.sh - a.ph;
    ix[i] = (pixel - line * a.ow) * a.sw - a.pw;
    at[i] = n * a.in_n + iy[i] * a.in_h + ix[i] * a.in_w;
  }
  int channel = chunk, kx = 0, ky = 0;
#if WHOLE_STEPS
#define CARRY
#define NEXT                     \
  ++kx;                          \
  ky += kx == a.kw;              \
  kx = kx == a.kw ? 0 : kx;      \
  channel += ky == a.kh ? 4 : 0; \
  ky = ky == a.kh ? 0 : ky;
#define INSIDE(i) \
  (((uint)(iy[i] + ky * a.dh) < (uint)a.ih) & ((uint)(ix[i] + kx * a.dw) < (uint)a.iw))
#else
  // Carries from channels to taps, and from taps to rows of taps; without branches, which PoCL 3.1
  // miscompiles in loops with barriers.
#define CARRY                            \
  {                                      \
    const int taps = channel / a.chunks; \
    channel -= taps * a.chunks;          \
    kx += taps;                          \
    const int rows = kx / a.kw;          \
    kx -= rows * a.kw;                   \
    ky += rows;                          \
  }
  CARRY
#define INSIDE(i)                                           \
  ((ky < a.kh) & ((uint)(iy[i] + ky * a.dh) < (uint)a.ih) & \
   ((uint)(ix[i] + kx * a.dw) < (uint)a.iw))
#define NEXT    \
  channel += 4; \
  CARRY
#endif
#define PLACE(i) at[i] + ky* a.dh* a.in_h + kx* a.dw* a.in_w + channel
#endif
  __global const uint4* weight = AT(weights) + (size_t)block * a.steps * (COLUMNS * 4) + item;
  const int own = SWIZZLED(row, chunk);  // the swizzle is the same PIXELS / 2 rows further on
#define READ(stage)                                                               \
  {                                                                               \
    __local uint4* const to = tiles + (stage)*STAGE;                              \
    UNROLL for (int i = 0; i < 2; ++i) {                                          \
      const bool inside = INSIDE(i);                                              \
      FN(copy_pixels)                                                             \
      (to + own + i * (PIXELS / 2 * 4), data + (inside ? PLACE(i) : 0), inside);  \
    }                                                                             \
    UNROLL for (int i = 0; i < (COLUMNS * 4 + ITEMS - 1) / ITEMS; ++i) {          \
      if (COLUMNS * 4 % ITEMS == 0 || item + i * ITEMS < COLUMNS * 4)             \
        FN(copy_weights)(to + PIXELS * 4 + item + i * ITEMS, weight + i * ITEMS); \
    }                                                                             \
    weight += COLUMNS * 4;                                                        \
    NEXT;                                                                         \
  }

  float sums[COLUMNS / 2];
  UNROLL for (int i = 0; i < COLUMNS / 2; ++i) { sums[i] = 0; }
  UNROLL for (int s = 0; s < STAGES - 1; ++s) {
    if (s < a.steps) READ(s)
    COMMIT_COPIES;
  }
  const int warp = item / 32 % 4, warpgroup = item / 128;
  int stage = 0, next = STAGES - 1;
  for (int step = 0; step < a.steps; ++step) {
    WAIT(COPIES_LEFT);
    PUBLISH;
    barrier(CLK_LOCAL_MEM_FENCE);  // all have copied this step and multiplied the previous one
    if (step + STAGES - 1 < a.steps) READ(next)
    COMMIT_COPIES;
    __local const uint4* const pixels = tiles + stage * STAGE + warpgroup * (64 * 4);
    __local const uint4* const columns = tiles + stage * STAGE + PIXELS * 4;
#if WGMMA_PTX
    MULTIPLY(sums, FN(descriptor)(pixels), FN(descriptor)(columns));
#else
    for (int i = 0; i < COLUMNS / 2; ++i) {
      const int r = warp * 16 + lane / 4 + i % 4 / 2 * 8, c = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (int k = 0; k < 32; ++k)
        sums[i] += FN(half_of)(pixels + SWIZZLED(r, k / 8), k % 8) *
                   FN(half_of)(columns + SWIZZLED(c, k / 8), k % 8);
    }
#endif
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next = next + 1 == STAGES ? 0 : next + 1;
  }

  // sums[j * 4 + k] is the pixel lane / 4 + k / 2 * 8 of the warp, the channel of column
  // j * 8 + lane % 4 * 2 + k % 2.
  const int first_channel = block * COLUMNS + lane % 4 * VECTOR;
  const int first_pixel = tile * PIXELS + warpgroup * 64 + warp * 16 + lane / 4, group = 0;
#define ROWS_OF_ITEM 2
#define SUM_OF(i, k, j) sums[((k) * (VECTOR / 2) + (j) / 2) * 4 + (i)*2 + (j) % 2]
#include "kernels/common/mma_store.cl"
}
