// Convolution of halves, bytes or floats of 8 bits by the warpgroup matrix instructions of NVIDIA's compute capability
// 9.0 (wgmma): a work-group multiplies 64 * WARPGROUPS pixels by COLUMNS output channels. Both tiles
// lie in local memory, which asynchronous copies fill STAGES - 1 steps ahead. A step has CHUNKS (4 or
// 8) chunks of 16 bytes per row: channels of one tap with WHOLE_STEPS, else any consecutive chunks.
// Chunk c of row r lies at r * 4 + (c ^ (r / 2) % 4) or r * 8 + (c ^ r % 8), the 64-byte and 128-byte
// swizzles of the matrix descriptors, which avoid bank conflicts of copies and multiplications.
// Chunks outside the input, and past the last tap, are zeros, or bytes that stand for 0. The weights
// are packed as [block of channels][step][row][chunk], swizzled; a block's channels are ordered as in
// convolution_mma.cl: a work-item ends up with VECTOR adjacent channels of a pixel. Defines besides T
// (of the output), VECTOR, COLUMNS, WARPGROUPS, STAGES and CHUNKS:
//   BYTES                 the data are bytes with integer sums that begin with start_sums; the chunk
//                         of bytes that stand for 0 follows on the weights
//   FLOAT8                the data and weights are f8e4m3
//   PARTIAL_STEPS         after so many steps, sums of f8e4m3 are added to totals of their own, if this is
//                         defined
//   WHOLE_STEPS           the input channels are a multiple of a step's. The taps of these channels
//                         are then adjacent steps, since they read pixels still in the first-level
//                         cache
//   POINTWISE             1x1; input and output are each one long row of pixels
//   FLAT_TAIL             the tail's operands are long rows of pixels as well
//   ALIGNED               an output vector lies at a multiple of its size
//   WGMMA_PTX             PTX (see engine/ocl/compiler/marked_ptx.h); else plain C computes the same values
//   SLICES                of the steps of a tile: each has work-items, stages and sums of its own, and waits
//                         for the others only when its sums are added to theirs
//   LATE                  a step's products are awaited after the next step's have begun; its tiles
//                         are then filled a step later
//   LOCAL_BYTES           with WGMMA_PTX: of both tiles of all stages
//   LIMIT_REGISTERS       with WGMMA_PTX: limits the registers of a work-item (marked_ptx.h)
//   COPIES_LEFT           steps that may still be copied when a step begins
//   MULTIPLY(sums, a, b)  with WGMMA_PTX: sums += tile a * tile b, for descriptors a and b
//   FINISH(sums)          with WGMMA_PTX: waits for all products

typedef struct {
#include "kernels/convolution/nvidia/convolution_wgmma_args.cl"
} FN(Args);

#include "kernels/common/warpgroup.cl"

#define STAGE ((PIXELS + COLUMNS) * CHUNKS)
#define AHEAD (STAGES - 1 - LATE)  // steps copied ahead
#define ROWS (CHUNKS / 2)  // rows of pixels, of which a work-item copies a chunk in each step

// Copies 16 bytes from global to local memory, past the first-level cache.
#if WGMMA_PTX
inline void FN(copy_weights)(__local uint4* to, __global const uint4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint)(size_t)to), "l"(from)
               : "memory");
}
#else
inline void FN(copy_weights)(__local uint4* to, __global const uint4* from) { *to = *from; }
#endif

WORK_GROUP(ITEMS, SLICES, 1)
KERNEL(IN(uint4, in), IN(uint4, weights), START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int slice = get_local_id(1), item = get_local_id(0), lane = item % 32;
  const int tile = (int)get_group_id(0) / a.blocks;
  const int block = (int)get_group_id(0) - tile * a.blocks;
  const int warp = item / 32 % 4, warpgroup = item / 128;
  DECLARE_SUMS
#if WGMMA_PTX
  DECLARE_TILES
#else
  __local uint4 tiles[SLICES * STAGES * STAGE] __attribute__((aligned(1024)));
#endif
  __local uint4* const own_tiles = tiles + slice * (STAGES * STAGE);
  const int first_step = slice * a.steps;

  // This work-item copies one chunk of ROWS rows of pixels, and of some rows of weights.
  const int chunk = item % CHUNKS, row = item / CHUNKS;
  int at[ROWS];
#if POINTWISE
  UNROLL for (int i = 0; i < ROWS; ++i) {
    at[i] = min(tile * PIXELS + row + i * (PIXELS / ROWS), a.pixels - 1) * a.in_w;
  }
  int channel = chunk + first_step * CHUNKS;
#define INSIDE(i) (channel < a.chunks)
#define PLACE(i) at[i] + channel
#define NEXT channel += CHUNKS
#else
  int iy[ROWS], ix[ROWS];
  UNROLL for (int i = 0; i < ROWS; ++i) {
    const int pixel = min(tile * PIXELS + row + i * (PIXELS / ROWS), a.pixels - 1);
    const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
    iy[i] = (line - n * a.oh) * a.sh - a.ph;
    ix[i] = (pixel - line * a.ow) * a.sw - a.pw;
    at[i] = n * a.in_n + iy[i] * a.in_h + ix[i] * a.in_w;
  }
#if WHOLE_STEPS
  const int first_part = first_step / (a.kw * a.kh),
            first_tap = first_step - first_part * (a.kw * a.kh);
  int channel = chunk + first_part * CHUNKS, ky = first_tap / a.kw, kx = first_tap - ky * a.kw;
#define NEXT                          \
  ++kx;                               \
  ky += kx == a.kw;                   \
  kx = kx == a.kw ? 0 : kx;           \
  channel += ky == a.kh ? CHUNKS : 0; \
  ky = ky == a.kh ? 0 : ky;
#define INSIDE(i) \
  (((uint)(iy[i] + ky * a.dh) < (uint)a.ih) & ((uint)(ix[i] + kx * a.dw) < (uint)a.iw))
#else
  int channel = chunk + first_step * CHUNKS, kx = 0, ky = 0;
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
#define NEXT         \
  channel += CHUNKS; \
  CARRY
#endif
#define PLACE(i) at[i] + ky* a.dh* a.in_h + kx* a.dw* a.in_w + channel
#endif
  __global const uint4* weight =
      AT(weights) + (size_t)(block * SLICES + slice) * a.steps * (COLUMNS * CHUNKS) + item;
  const int own = SWIZZLED(row, chunk);  // the swizzle repeats after PIXELS / ROWS rows
#define READ(stage)                                                                    \
  {                                                                                    \
    __local uint4* const to = own_tiles + (stage)*STAGE;                               \
    UNROLL for (int i = 0; i < ROWS; ++i) {                                            \
      const bool inside = INSIDE(i);                                                   \
      COPY_PIXELS(to + own + i * (PIXELS / ROWS * CHUNKS), PLACE(i), inside);          \
    }                                                                                  \
    UNROLL for (int i = 0; i < (COLUMNS * CHUNKS + ITEMS - 1) / ITEMS; ++i) {          \
      if (COLUMNS * CHUNKS % ITEMS == 0 || item + i * ITEMS < COLUMNS * CHUNKS)        \
        FN(copy_weights)(to + PIXELS * CHUNKS + item + i * ITEMS, weight + i * ITEMS); \
    }                                                                                  \
    weight += COLUMNS * CHUNKS;                                                        \
    NEXT;                                                                              \
  }

  UNROLL for (int s = 0; s < AHEAD; ++s) {
    if (s < a.steps) READ(s)
    COMMIT_COPIES;
  }
  int stage = 0, next = AHEAD;
  for (int step = 0; step < a.steps; ++step) {
    WAIT(COPIES_LEFT);
    PUBLISH;
    // All work-items have copied this step, and have multiplied the step whose tiles are
    // overwritten next.
    SLICE_BARRIER;
    if (step + AHEAD < a.steps) READ(next)
    COMMIT_COPIES;
    __local const uint4* const pixels = own_tiles + stage * STAGE + warpgroup * (64 * CHUNKS);
    __local const uint4* const columns = own_tiles + stage * STAGE + PIXELS * CHUNKS;
#if WGMMA_PTX
    MULTIPLY(sums, FN(descriptor)(pixels), FN(descriptor)(columns));
#else
    MULTIPLY_PLAINLY(pixels, 0, columns)
#endif
    ADD_PARTIAL
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next = next + 1 == STAGES ? 0 : next + 1;
  }
#if WGMMA_PTX && LATE
  FINISH(sums);
#endif
  ADD_TOTALS
  ADD_SLICES

  const int first_pixel = tile * PIXELS + warpgroup * 64 + warp * 16 + lane / 4, group = 0;
#define ROWS_OF_ITEM 2
#define SUM_OF(i, k, j) sums[((k) * (VECTOR / 2) + (j) / 2) * 4 + (i)*2 + (j) % 2]
#include "kernels/common/mma_store.cl"
}
