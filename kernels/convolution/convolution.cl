// Direct convolution on channels-last activations: a work-item computes TILE_P neighbouring pixels
// x VECTORS vectors of VECTOR output channels in registers. Weights are packed as
// [group][block][kd] [kh][kw][input channel][VECTORS][LANES][VECTOR]; a row of zeros after the
// weights is read for every pixel outside the input. Defines besides T, VECTOR, VECTORS and TILE_P:
//   IN_T                 type of the input and the weights
//   LANES, ROWS, SLICES  work-group: lanes along output channels x rows of tiles x slices of the
//                        input channels, whose sums are added in local memory
//   UNROLL, ALIGNED      input channels per load, 1 or 4 (1: broadcasts); ALIGNED: aligned fours
//   ROLLED               for a CPU: results are stored in a loop; blocks may be dimension 1
//   POINTWISE            1x1; input and output are each one long row of pixels
//   FLAT_TAIL            the tail's operands are long rows of pixels as well
//   DEPTH                there is a third spatial dimension

#define RESULT(v) v
#include "kernels/common/tile.cl"

#define WEIGHT_(j, k) \
  const FV w##k = LOADV_ALIGNED(IN_T, VECTOR, w + (j)*BLOCK + (k)*LANES * VECTOR);
#define FMA_(p, k) acc##p##_##k = fma((FV)(x##p), w##k, acc##p##_##k);

// Adds the products of one input channel of every pixel at r0, r1, ... and its row of weights.
#define LOAD_ONE(p) const float x##p = LOADV(IN_T, 1, r##p + i);
#define FMA(p) REPEAT_WITH(VECTORS, p, FMA_)
#define STEP_ONE                     \
  {                                  \
    REPEAT_WITH(VECTORS, 0, WEIGHT_) \
    REPEAT(TILE_P, LOAD_ONE)         \
    REPEAT(TILE_P, FMA)              \
    w += BLOCK;                      \
    BRING_AHEAD                      \
  }

#if UNROLL == 4
#if ALIGNED
#define LOAD_MANY(p) const float4 v##p = LOADV_ALIGNED(IN_T, 4, r##p + i);
#else
#define LOAD_MANY(p) const float4 v##p = LOADV(IN_T, 4, r##p + i);
#endif
#define X0(p) const float x##p = v##p.s0;
#define X1(p) const float x##p = v##p.s1;
#define X2(p) const float x##p = v##p.s2;
#define X3(p) const float x##p = v##p.s3;
#define STEP_PART(j, X)              \
  {                                  \
    REPEAT_WITH(VECTORS, j, WEIGHT_) \
    REPEAT(TILE_P, X)                \
    REPEAT(TILE_P, FMA)              \
  }
#define RUN_PART(from, n)          \
  {                                \
    int i = from;                  \
    for (; i + 4 <= (n); i += 4) { \
      REPEAT(TILE_P, LOAD_MANY)    \
      STEP_PART(0, X0)             \
      STEP_PART(1, X1)             \
      STEP_PART(2, X2)             \
      STEP_PART(3, X3)             \
      w += 4 * BLOCK;              \
    }                              \
    for (; i < (n); ++i) STEP_ONE  \
  }
#else
#define RUN_PART(from, n) \
  for (int i = from; i < (n); ++i) STEP_ONE
#endif

// Adds the products of all n input elements, or this work-item's slice of them, and their n rows of
// weights.
#if SLICES > 1
#define RUN(n)                                                           \
  {                                                                      \
    const int part = ((n) + SLICES * 4 - 1) / (SLICES * 4) * 4;          \
    const int from = min(slice * part, (n)), to = min(from + part, (n)); \
    __global const IN_T* const next = w + (n)*BLOCK;                     \
    w += from * BLOCK;                                                   \
    RUN_PART(from, to)                                                   \
    w = next;                                                            \
  }
#else
#define RUN(n) RUN_PART(0, n)
#endif

WORK_GROUP(LANES, ROWS, SLICES)
KERNEL(IN(IN_T, in), IN(IN_T, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = RUN_OF_TILES * a.tiles_per_item;
#if SLICES > 1
  // Tiles past the end repeat the last pixel and store nothing, because all work-items of a group
  // must pass the barriers equally often.
  const int last = first + a.tiles_per_item;
  const int slice = get_local_id(2);
  SHARED(float, sums, SLICES* LANES* ROWS* TILE_P* VECTORS* VECTOR);
#else
  const int last = min(first + a.tiles_per_item, a.tiles);
#endif
  const int group = BLOCK_NUMBER / a.blocks;
  const int lane_c = (BLOCK_NUMBER - group * a.blocks) * BLOCK + (int)get_local_id(0) * VECTOR;
  __global const IN_T* start = AT(in) + group * a.in_channels;
  __global const IN_T* const block =
      AT(weights) + BLOCK_NUMBER * (a.depth * BLOCK) + (int)get_local_id(0) * VECTOR;
#if !POINTWISE
  __global const IN_T* const zeros = AT(weights) + a.outside;
#include "kernels/common/tile_start.cl"
#endif
  for (int tile = first; tile < last; ++tile) {
    const int left = a.pixels - tile * TILE_P;
#define CLEAR_(p, k) FV acc##p##_##k = 0;
#define CLEAR(p) REPEAT_WITH(VECTORS, p, CLEAR_)
    REPEAT(TILE_P, CLEAR)
    __global const IN_T* w = block;
    START_AHEAD(block, BLOCK * sizeof(IN_T))

#if POINTWISE
    // Pixels past the end repeat the last one and are not stored.
#define POINT(p) \
  __global const IN_T* const r##p = start + min(tile * TILE_P + p, a.pixels - 1) * a.in_w;
    REPEAT(TILE_P, POINT)
    RUN(a.in_channels)
#else
    int inside = 1;
    REPEAT(TILE_P, PLACE)
    if (inside) {
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < runs; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
#define INNER(p) __global const IN_T* const r##p = start + (at##p + tap);
          REPEAT(TILE_P, INNER)
          RUN(run)
        }
    } else {
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
          int any = 0;
#define BORDER(p)                                                             \
  const int valid##p = VALID(p);                                              \
  __global const IN_T* const r##p = valid##p ? start + (at##p + tap) : zeros; \
  any |= valid##p;
          REPEAT(TILE_P, BORDER)
          if (any)
            RUN(a.in_channels)
          else
            w += a.in_channels * BLOCK;
        }
    }
#endif

#if SLICES > 1
#include "kernels/common/tile_slices.cl"
#else
#include "kernels/common/tile_store.cl"
#endif
  }
}
