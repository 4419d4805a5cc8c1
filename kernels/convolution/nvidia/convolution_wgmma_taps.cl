// Convolution by warpgroup matrix instructions like convolution_wgmma.cl, whose taps share the pixels in
// local memory: for stride 1, and an output as large as the input. All lines of all images are one row
// of places, with a.pw gaps after each line and a.ph lines of gaps after each image, which read as
// zeros. So a tap reads the same distance further on for all places, and its tile begins so many rows
// further on in local memory; swizzles are those of addresses. `ow` and `oh` count the gaps, whose sums
// are not stored. A part of the channels, those of a step, has its pixels in a buffer of its own; one
// work-item copies the weights of a step, in one piece. Slices have parts of their own. Weights, their
// order and defines are those of convolution_wgmma.cl with WHOLE_STEPS and without POINTWISE, and:
//   HALO_ROWS  number of places that a tile reads, rounded up to whole swizzles
//   BUFFERS    number of buffers for pixels: 1, or 2 if the next part is copied while one is multiplied

typedef struct {
#include "kernels/convolution/nvidia/convolution_wgmma_args.cl"
} FN(Args);

#include "kernels/common/warpgroup.cl"
#include "kernels/common/warpgroup_barrier.cl"

#define BUFFER (HALO_ROWS * CHUNKS)
#define STAGE (COLUMNS * CHUNKS)
#define ROWS (ITEMS / CHUNKS)  // rows of pixels that all work-items copy at once
#define PASSES ((HALO_ROWS + ROWS - 1) / ROWS)
#define SLICE_TILES (BUFFERS * BUFFER + STAGES * STAGE)
#define GAPS 1

WORK_GROUP(ITEMS, SLICES, 1)
KERNEL(IN(uint4, in), IN(uint4, weights), START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int slice = get_local_id(1), item = get_local_id(0), lane = item % 32;
  const int tile = (int)get_group_id(0) / a.blocks;
  const int block = (int)get_group_id(0) - tile * a.blocks;
  const int warp = item / 32 % 4, warpgroup = item / 128;
  DECLARE_SUMS
#if WGMMA_PTX
  DECLARE_TILES
  const uint barriers = (uint)(size_t)tiles + (SLICES * SLICE_TILES + slice * STAGES) * 16;
  if (item == 0) {
    for (int s = 0; s < STAGES; ++s) {
      FN(make_barrier)(FULL(s), 1);
      FN(make_barrier)(FREE(s), 4 * WARPGROUPS);
    }
    PUBLISH_BARRIERS;
  }
  SLICE_BARRIER;
#else
  __local uint4 tiles[SLICES * SLICE_TILES] __attribute__((aligned(1024)));
#endif
  __local uint4* const buffers = tiles + slice * SLICE_TILES;
  __local uint4* const columns = buffers + BUFFERS * BUFFER;

  const int taps = a.kh * a.kw, parts = a.steps / taps;  // parts of the slice
  // This work-item copies one chunk of each ROWS-th row of pixels.
  const int chunk = item % CHUNKS, row = item / CHUNKS;
  int at[PASSES];
  UNROLL for (int i = 0; i < PASSES; ++i) {
    const int signed_place = tile * PIXELS - a.ph * a.ow - a.pw + row + i * ROWS;
    const int place = max(signed_place, 0);
    const int line = QUOTIENT(place, ow), n = QUOTIENT(line, oh);
    const int x = place - line * a.ow, y = line - n * a.oh;
    const bool inside = (signed_place >= 0) & (place < a.pixels) & (x < a.iw) & (y < a.ih);
    at[i] = inside ? n * a.in_n + y * a.in_h + x * a.in_w + slice * parts * CHUNKS + chunk : -1;
  }
  const int own = SWIZZLED(row, chunk);  // the swizzle repeats after ROWS rows
#define READ_PIXELS(part)                                                                       \
  UNROLL for (int i = 0; i < PASSES; ++i) {                                                     \
    if (HALO_ROWS % ROWS == 0 || row + i * ROWS < HALO_ROWS) {                                  \
      const bool inside = at[i] >= 0;                                                           \
      COPY_PIXELS(buffers + (part) % BUFFERS * BUFFER + own + i * ITEMS, at[i] + (part)*CHUNKS, \
                  inside);                                                                      \
    }                                                                                           \
  }

  __global const uint4* weight = AT(weights) + (size_t)(block * SLICES + slice) * a.steps * STAGE;
#if WGMMA_PTX
#define READ_WEIGHTS(stage)                                                                     \
  {                                                                                             \
    FN(copy_weights)((uint)(size_t)(columns + (stage)*STAGE), weight, FULL(stage), STAGE * 16); \
    weight += STAGE;                                                                            \
  }
  if (item == 0)
    for (int s = 0; s < min(STAGES, a.steps); ++s) READ_WEIGHTS(s)
#endif
  READ_PIXELS(0)
  COMMIT_COPIES;
  int step = 0, stage = 0, next = 0;
  uint full_phase = 0, free_phase = 0;
  for (int part = 0; part < parts; ++part) {
#if WGMMA_PTX && LATE
    FINISH(sums);
#endif
#if BUFFERS == 1
    if (part > 0) {
      SLICE_BARRIER;
      READ_PIXELS(part)
      COMMIT_COPIES;
    }
#endif
    WAIT(0);
    PUBLISH;
    // All work-items have copied this part of the channels, and have multiplied the previous part.
    SLICE_BARRIER;
#if BUFFERS == 2
    if (part + 1 < parts) {
      READ_PIXELS(part + 1)
      COMMIT_COPIES;
    }
#endif
    __local const uint4* const pixels = buffers + part % BUFFERS * BUFFER;
    int first = warpgroup * 64, kx = 0;  // first row of the tap
    for (int tap = 0; tap < taps; ++tap) {
#if WGMMA_PTX
      FN(await)(FULL(stage), full_phase);
      MULTIPLY(sums, FN(descriptor)(pixels + first * CHUNKS),
               FN(descriptor)(columns + stage * STAGE));
      // The previous step's products are complete.
      if (lane == 0 && step >= LATE) FN(arrive)(FREE((stage + STAGES - LATE) % STAGES));
      // The stage to fill was multiplied a step earlier, so other warps have had time to free it.
      if (item == 0 && step > LATE && step + STAGES - LATE - 1 < a.steps) {
        FN(await)(FREE(next), free_phase);
        READ_WEIGHTS(next)
        next = next + 1 == STAGES ? 0 : next + 1;
        free_phase ^= next == 0;
      }
      stage = stage + 1 == STAGES ? 0 : stage + 1;
      full_phase ^= stage == 0;
      ++step;
#else
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = item; i < STAGE; i += ITEMS) columns[i] = weight[i];
      weight += STAGE;
      barrier(CLK_LOCAL_MEM_FENCE);
      MULTIPLY_PLAINLY(pixels, first, columns)
#endif
      ADD_PARTIAL
      ++kx;
      first += kx == a.kw ? a.ow - a.kw + 1 : 1;
      kx = kx == a.kw ? 0 : kx;
    }
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
