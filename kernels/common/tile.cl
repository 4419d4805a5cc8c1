// Code shared by the tile kernels: arguments, positions of a tile's pixels, and stores of vectors
// of sums. A kernel defines T and STORED (of the output), VECTOR, VECTORS, TILE_P, LANES, ROLLED, POINTWISE,
// FLAT_TAIL and DEPTH, RESULT(v), which converts a vector of sums to floats, and ALIGNED_OUT where
// vectors of the output are aligned to their size.

typedef struct {
#include "kernels/common/tile_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define BLOCK (VECTORS * LANES * VECTOR)

// Finds the tiles and the block of channels of this work-item. Only programs for CPUs support
// blocks_first.
#if ROLLED
#define RUN_OF_TILES (int)(a.blocks_first ? get_global_id(2) : get_global_id(1))
#define BLOCK_NUMBER (int)(a.blocks_first ? get_group_id(1) : get_group_id(2))
#else
#define RUN_OF_TILES (int)get_global_id(1)
#define BLOCK_NUMBER (int)get_group_id(2)
#endif

// Brings the next block's weights into a CPU's cache. Each tile brings an equal part of them: AHEAD
// cache lines with each row of this block's weights. `row` is the number of bytes of a row.
#if AHEAD
#define START_AHEAD(block, row)                                       \
  const size_t to_next = lane_c + BLOCK < a.out_channels ? (row) : 0; \
  const uchar* ahead =                                                \
      (const uchar*)(size_t)(block) + (size_t)a.depth * ((size_t)tile * a.ahead + to_next);
#define BRING_LINE(i) __builtin_prefetch(ahead + 64 * (i), 0, 2);
#define BRING_AHEAD         \
  REPEAT(AHEAD, BRING_LINE) \
  ahead += a.ahead;
#else
#define START_AHEAD(block, row)
#define BRING_AHEAD
#endif

// Finds the positions of a tile's pixels: n0, y0, x0, ... in the output, at0, ... in the input.
// `inside` is true if all their taps lie inside the input. Advances n, y, x to the next tile.
#if DEPTH
#define PLACE_Z(p) const int z##p = z, iz##p = z * a.sd - a.pd;
#define NEXT_Y         \
  {                    \
    y = 0;             \
    if (++z == a.od) { \
      z = 0;           \
      ++n;             \
    }                  \
  }
#define OFFSET_Z(p) +iz##p* a.in_d
#define INSIDE_Z(p) &(iz##p >= 0) & (iz##p < inside_z)
#define VALID_Z(p) &((uint)(iz##p + kz * a.dd) < (uint)a.id)
#define LOOP_Z for (int kz = 0; kz < a.kd; ++kz)
#define TAP_Z +kz* a.dd* a.in_d
#else
#define PLACE_Z(p)
#define NEXT_Y \
  {            \
    y = 0;     \
    ++n;       \
  }
#define OFFSET_Z(p)
#define INSIDE_Z(p)
#define VALID_Z(p)
#define LOOP_Z
#define TAP_Z
#endif
#define PLACE(p)                                                                               \
  PLACE_Z(p)                                                                                   \
  const int n##p = n, y##p = y, x##p = x, iy##p = y * a.sh - a.ph, ix##p = x * a.sw - a.pw;    \
  const int at##p = n * a.in_n OFFSET_Z(p) + iy##p * a.in_h + ix##p * a.in_w;                  \
  inside &= (iy##p >= 0) & (ix##p >= 0) & (iy##p < inside_y) & (ix##p < inside_x) INSIDE_Z(p); \
  if (p + 1 < left && ++x == a.ow) {                                                           \
    x = 0;                                                                                     \
    if (++y == a.oh) NEXT_Y                                                                    \
  }
#define VALID(p) \
  (((uint)(iy##p + ky * a.dh) < (uint)a.ih) & ((uint)(ix##p + kx * a.dw) < (uint)a.iw) VALID_Z(p))

#if POINTWISE
#define PIXEL_OFFSET(p) (tile * TILE_P + p) * a.out_w
#if FLAT_TAIL
#define TAIL_N(p) 0
#define TAIL_Y(p) 0
#define TAIL_X(p) tile* TILE_P + p
#else
#define TAIL_N(p) (tile * TILE_P + p) / (a.oh * a.ow)
#define TAIL_Y(p) (tile * TILE_P + p) / a.ow % a.oh
#define TAIL_X(p) (tile * TILE_P + p) % a.ow
#endif
#else
#if DEPTH
#define PIXEL_OFFSET(p) n##p* a.out_n + z##p* a.out_d + y##p* a.out_h + x##p* a.out_w
#else
#define PIXEL_OFFSET(p) n##p* a.out_n + y##p* a.out_h + x##p* a.out_w
#endif
#define TAIL_N(p) n##p
#define TAIL_Y(p) y##p
#define TAIL_X(p) x##p
#endif

// Stores the first `left` channels of v.
#ifdef ALIGNED_OUT
void FN(store)(FV v, __global T* to, int left) {
  if (left >= VECTOR)
    STOREV_ALIGNED(STORED, VECTOR, v, to);
  else
    STORE_FIRST(STORED, VECTOR, v, to, left)
}
#else
void FN(store)(FV v, __global T* to, int left) { STORE_FIRST(STORED, VECTOR, v, to, left) }
#endif
#define STORE_(p, k)                                                                            \
  if (lane_c + k * LANES * VECTOR < a.out_channels) {                                           \
    const int channels_left = a.out_channels - lane_c - k * LANES * VECTOR;                     \
    const int c = group * a.out_channels + lane_c + k * LANES * VECTOR;                         \
    const FV v = TAIL(RESULT(acc##p##_##k), TAIL_N(p), TAIL_Y(p), TAIL_X(p), c, channels_left); \
    FN(store)(v, AT(out) + PIXEL_OFFSET(p) + c, channels_left);                                 \
  }
