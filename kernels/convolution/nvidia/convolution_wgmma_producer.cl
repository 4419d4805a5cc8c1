// Convolution by warpgroup matrix instructions like convolution_wgmma.cl, by work-groups that stay and
// take one tile after the other. Warps of their own, the producers, copy the steps of all these tiles:
// each work-item some rows of pixels, chunk by chunk, and one work-item the weights of a step in one
// piece. So the warpgroups that multiply issue no copies, wait for no other warpgroup, and find the
// first steps of the next tile copied when they have stored a tile. Weights, their order and defines
// are those of convolution_wgmma.cl with SLICES 1, and:
//   PRODUCERS     work-items that copy
//   ZERO_OUTSIDE  the chunk outside of the input is zeros

typedef struct {
#include "kernels/convolution/nvidia/convolution_wgmma_args.cl"
} FN(Args);

#include "kernels/common/warpgroup.cl"
#include "kernels/common/warpgroup_barrier.cl"

#define STAGE ((PIXELS + COLUMNS) * CHUNKS)
// A producer copies a chunk of each of ROWS rows of pixels in a step, which are BETWEEN rows apart.
#define ROWS (PIXELS * CHUNKS / PRODUCERS)
#define BETWEEN (PRODUCERS / CHUNKS)

// Returns where the first tap of a pixel lies, in chunks, and whether taps lie in the input, one bit each.
inline int2 FN(row_of)(int pixel, const FN(Args) a) {
#if POINTWISE
  return (int2)(min(pixel, a.pixels - 1) * a.in_w, 1);
#else
  pixel = min(pixel, a.pixels - 1);
  const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
  const int iy = (line - n * a.oh) * a.sh - a.ph, ix = (pixel - line * a.ow) * a.sw - a.pw;
  uint across = 0, inside = 0;
  for (int kx = 0; kx < a.kw; ++kx) across |= (uint)((uint)(ix + kx * a.dw) < (uint)a.iw) << kx;
  for (int ky = a.kh - 1; ky >= 0; --ky)
    inside = inside << a.kw | ((uint)(iy + ky * a.dh) < (uint)a.ih ? across : 0);
  return (int2)(n * a.in_n + iy * a.in_h + ix * a.in_w, (int)inside);
#endif
}

// The tap and the chunk of it that a work-item copies in a step.
#if POINTWISE
#define FIRST_CHUNK int channel = chunk;
#define OFFSET channel
#if WHOLE_STEPS
#define TAP 1
#else
#define TAP (channel < a.chunks ? 1 : 0)
#endif
#define NEXT channel += CHUNKS;
#elif WHOLE_STEPS
#define FIRST_CHUNK int offset = chunk, tap = 0, kx = 0;
#define OFFSET offset
#define TAP (1u << tap)
#define NEXT                                                        \
  ++tap;                                                            \
  ++kx;                                                             \
  offset += a.dw * a.in_w;                                          \
  offset += kx == a.kw ? a.dh * a.in_h - kx * a.dw * a.in_w : 0;    \
  kx = kx == a.kw ? 0 : kx;                                         \
  offset += tap == a.kw * a.kh ? CHUNKS - a.kh * a.dh * a.in_h : 0; \
  tap = tap == a.kw * a.kh ? 0 : tap;
#else
#define FIRST_CHUNK             \
  int channel = chunk, tap = 0; \
  CARRY
#define CARRY                            \
  {                                      \
    const int taps = channel / a.chunks; \
    channel -= taps * a.chunks;          \
    tap += taps;                         \
  }
#define OFFSET tap / a.kw* a.dh* a.in_h + tap % a.kw* a.dw* a.in_w + channel
#define TAP (1u << tap)  // past the last tap no bit of a row is set
#define NEXT         \
  channel += CHUNKS; \
  CARRY
#endif

#define EACH_TILE                                                                \
  for (int t = get_group_id(0); t < (a.pixels + PIXELS - 1) / PIXELS * a.blocks; \
       t += get_num_groups(0))
#define OF_TILE const int tile = t / a.blocks, block = t - tile * a.blocks;

#if WGMMA_PTX
#define PRODUCERS_BARRIER asm volatile("bar.sync 1, %0;" ::"r"(PRODUCERS) : "memory")
#define NEXT_STAGE                             \
  stage = stage + 1 == STAGES ? 0 : stage + 1; \
  phase ^= stage == 0;
// Arrives at a barrier, which expects it, when all copies of this work-item so far are complete.
inline void FN(arrive_when_copied)(uint barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Copies 16 bytes of a row, `at` chunks behind `from`, or what stands for pixels outside of the input.
// The address takes one instruction so.
inline void FN(copy_row)(uint to, __global const uint4* from, int at, __global const uint4* outside,
                         bool inside) {
#if POINTWISE && WHOLE_STEPS
  asm volatile(
      "{ .reg .b64 place; mad.wide.s32 place, %1, 16, %2; "
      "cp.async.cg.shared.global [%0], [place], 16; }" ::"r"(to),
      "r"(at), "l"(from)
      : "memory");
#elif ZERO_OUTSIDE
  asm volatile(
      "{ .reg .b64 place; .reg .pred no; setp.eq.u32 no, %3, 0; mad.wide.s32 place, %1, 16, %2; "
      "cp.async.ca.shared.global [%0], [place], 16, no; }" ::"r"(to),
      "r"(at), "l"(from), "r"((uint)inside)
      : "memory");
#else
  asm volatile(
      "{ .reg .b64 place; .reg .pred yes; setp.ne.u32 yes, %3, 0; mad.wide.s32 place, %1, 16, %2; "
      "selp.b64 place, place, %4, yes; cp.async.ca.shared.global [%0], [place], 16; }" ::"r"(to),
      "r"(at), "l"(from), "r"((uint)inside), "l"(outside)
      : "memory");
#endif
}
#endif

WORK_GROUP(ITEMS + PRODUCERS, 1, 1)
KERNEL(IN(uint4, in), IN(uint4, weights), START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int item = get_local_id(0), lane = item % 32, slice = 0;
  const int warp = item / 32 % 4, warpgroup = item / 128;
  const bool producer = item >= ITEMS;
  const int own = item - ITEMS;  // number of a producer
  const int chunk = own % CHUNKS, row = own / CHUNKS;
  const int column_chunks = COLUMNS * CHUNKS;
#if WGMMA_PTX
  DECLARE_TILES
  __local int2* const rows = (__local int2*)(tiles + STAGES * STAGE);
  const uint barriers = (uint)(size_t)(rows + PIXELS);
  if (item == 0) {
    for (int s = 0; s < STAGES; ++s) {
      FN(make_barrier)(FULL(s), PRODUCERS + 1);
      FN(make_barrier)(FREE(s), 4 * WARPGROUPS);
    }
    PUBLISH_BARRIERS;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int stage = 0;
  uint phase = 0;
  if (producer) {
    __global const uint4* const outside = OUTSIDE;
    // The swizzle repeats after two rows of a work-item at most.
    const int even = SWIZZLED(row, chunk), odd = SWIZZLED(row + BETWEEN, chunk) - BETWEEN * CHUNKS;
    EACH_TILE {
      OF_TILE
      // Each work-item finds some rows for all.
      PRODUCERS_BARRIER;
      UNROLL for (int r = own; r < PIXELS; r += PRODUCERS) {
        rows[r] = FN(row_of)(tile * PIXELS + r, a);
      }
      PRODUCERS_BARRIER;
      int at[ROWS];
      uint inside[ROWS];
      UNROLL for (int i = 0; i < ROWS; ++i) {
        const int2 found = rows[row + i * BETWEEN];
        at[i] = found.x;
        inside[i] = (uint)found.y;
      }
      __global const uint4* weight = AT(weights) + (size_t)block * a.steps * column_chunks;
#ifdef TAIL_AHEAD
      // This starts early to bring what the tail reads from memory.
      for (int r = own; r < PIXELS; r += PRODUCERS) {
        const int pixel = min(tile * PIXELS + r, a.pixels - 1);
#if POINTWISE && FLAT_TAIL
        const int n = 0, y = 0, x = pixel;
#else
        const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
        const int y = line - n * a.oh, x = pixel - line * a.ow;
#endif
        TAIL_AHEAD(n, y, x, block * COLUMNS, min(COLUMNS, a.out_channels - block * COLUMNS));
      }
#endif
      FIRST_CHUNK
      for (int step = 0; step < a.steps; ++step) {
        FN(await)(FREE(stage), phase ^ 1);
        const uint to = (uint)(size_t)(tiles + stage * STAGE);
        if (own == 0) {
          FN(copy_weights)(to + PIXELS * CHUNKS * 16, weight, FULL(stage), COLUMNS * CHUNKS * 16);
        }
        weight += column_chunks;
        __global const uint4* const from = AT(in) + (OFFSET);
        const uint tap_bit = TAP;
        UNROLL for (int i = 0; i < ROWS; ++i) {
          const int place = i % 2 ? odd : even;
          FN(copy_row)
          (to + (place + i * BETWEEN * CHUNKS) * 16, from, at[i], outside,
           (inside[i] & tap_bit) != 0);
        }
        FN(arrive_when_copied)(FULL(stage));
        NEXT NEXT_STAGE
      }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    return;
  }
#else
  __local uint4 tiles[STAGE] __attribute__((aligned(1024)));
#endif
  EACH_TILE {
    OF_TILE
    DECLARE_SUMS
#if WGMMA_PTX
#if LATE
    uint last = 0;
#endif
    for (int step = 0; step < a.steps; ++step) {
      FN(await)(FULL(stage), phase);
      PUBLISH;
      __local const uint4* const pixels = tiles + stage * STAGE + warpgroup * (64 * CHUNKS);
      __local const uint4* const columns = tiles + stage * STAGE + PIXELS * CHUNKS;
      MULTIPLY(sums, FN(descriptor)(pixels), FN(descriptor)(columns));
#if LATE
      // The previous step's products are complete.
      if (lane == 0 && step > 0) FN(arrive)(last);
      last = FREE(stage);
#else
      if (lane == 0) FN(arrive)(FREE(stage));
#endif
      ADD_PARTIAL
      NEXT_STAGE
    }
#if LATE
    FINISH(sums);
    if (lane == 0) FN(arrive)(last);
#endif
#else
    __global const uint4* weight = AT(weights) + (size_t)block * a.steps * column_chunks;
    __local const uint4* const pixels = tiles + min(warpgroup, WARPGROUPS - 1) * (64 * CHUNKS);
    __local const uint4* const columns = tiles + PIXELS * CHUNKS;
    FIRST_CHUNK
    for (int step = 0; step < a.steps; ++step) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < (producer ? ROWS : 0); ++i) {
        const int2 found = FN(row_of)(tile * PIXELS + row + i * BETWEEN, a);
        const bool inside = ((uint)found.y & (uint)(TAP)) != 0;
        COPY_PIXELS(tiles + SWIZZLED(row + i * BETWEEN, chunk), found.x + OFFSET, inside);
      }
      for (int i = item; i < column_chunks; i += ITEMS + PRODUCERS)
        tiles[PIXELS * CHUNKS + i] = weight[i];
      weight += column_chunks;
      barrier(CLK_LOCAL_MEM_FENCE);
      MULTIPLY_PLAINLY(pixels, 0, columns)
      ADD_PARTIAL
      NEXT
    }
#endif
    ADD_TOTALS
    // Producers store nothing.
    const int first_pixel =
        producer ? a.pixels : tile * PIXELS + warpgroup * 64 + warp * 16 + lane / 4;
    const int group = 0;
#define ROWS_OF_ITEM 2
#define SUM_OF(i, k, j) sums[((k) * (VECTOR / 2) + (j) / 2) * 4 + (i)*2 + (j) % 2]
#include "kernels/common/mma_store.cl"
  }
}
