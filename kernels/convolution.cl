// Direct convolution on channels-last activations: a work-item computes TILE_P neighbouring pixels
// x VECTORS vectors of VECTOR output channels in registers. Weights are packed [group][block][kd]
// [kh][kw][input channel][VECTORS][LANES][VECTOR]; a row of zeros behind them stands for every
// pixel outside the input. Defines beside T, VECTOR, VECTORS and TILE_P: LANES, ROWS, SLICES
// work-group: lanes along output channels x rows of tiles x slices of the input
//                      channels, whose sums are added up in local memory
// UNROLL, ALIGNED      input channels loaded at once, 1 or 4 (1: broadcasts); fours are aligned
// POINTWISE, FLAT_TAIL 1x1, both tensors are one long row of pixels; so are the tail's operands
// DEPTH                there is a third spatial dimension

typedef struct {
  int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
  int id, ih, iw, od, oh, ow, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw;
  int in_channels, out_channels, blocks;  // of one group
  int pixels, tiles, tiles_per_item;
  int merged;  // a row of the kernel meets adjacent memory: kw * in_channels elements at a stretch
  int zeros;   // where the zeros start
} FN(Args);

#define FV FLOATV(VECTOR)
#define BLOCK (VECTORS * LANES * VECTOR)

// Stores the first `left` channels of v.
void FN(store)(FV v, __global T *to, int left) {
  if (left >= VECTOR) {
    STOREV(T, VECTOR, v, to);
  } else {
    float part[VECTOR];
    STOREV_PRIVATE(VECTOR, v, part);
    for (int i = 0; i < left; ++i) STOREV(T, 1, part[i], to + i);
  }
}

#define WEIGHT_(j, k) const FV w##k = LOADV_ALIGNED(T, VECTOR, w + (j)*BLOCK + (k)*LANES * VECTOR);
#define FMA_(p, k) acc##p##_##k = fma((FV)(x##p), w##k, acc##p##_##k);

// One input channel of every pixel at r0, r1, ... times its row of weights.
#define LOAD_ONE(p) const float x##p = LOADV(T, 1, r##p + i);
#define FMA(p) REPEAT_WITH(VECTORS, p, FMA_)
#define STEP_ONE                     \
  {                                  \
    REPEAT_WITH(VECTORS, 0, WEIGHT_) \
    REPEAT(TILE_P, LOAD_ONE)         \
    REPEAT(TILE_P, FMA)              \
    w += BLOCK;                      \
  }

#if UNROLL == 4
#if ALIGNED
#define LOAD_MANY(p) const float4 v##p = LOADV_ALIGNED(T, 4, r##p + i);
#else
#define LOAD_MANY(p) const float4 v##p = LOADV(T, 4, r##p + i);
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

// All of n input elements with their n rows of weights, or this work-item's slice of them.
#if SLICES > 1
#define RUN(n)                                                           \
  {                                                                      \
    const int part = ((n) + SLICES * 4 - 1) / (SLICES * 4) * 4;          \
    const int from = min(slice * part, (n)), to = min(from + part, (n)); \
    __global const T *const next = w + (n)*BLOCK;                        \
    w += from * BLOCK;                                                   \
    RUN_PART(from, to)                                                   \
    w = next;                                                            \
  }
#else
#define RUN(n) RUN_PART(0, n)
#endif

__attribute__((reqd_work_group_size(LANES, ROWS, SLICES)))
KERNEL(IN(T, in), IN(T, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
#if SLICES > 1
  // All work-items of a group pass the barriers equally often; tiles past the end repeat the last
  // pixel and store nothing.
  const int last = first + a.tiles_per_item;
  const int slice = get_local_id(2);
  __local float sums[SLICES * LANES * ROWS * TILE_P * VECTORS * VECTOR];
#else
  const int last = min(first + a.tiles_per_item, a.tiles);
#endif
  const int group = (int)get_group_id(2) / a.blocks;
  const int lane_c =
      ((int)get_group_id(2) - group * a.blocks) * BLOCK + (int)get_local_id(0) * VECTOR;
  __global const T *start = AT(in) + group * a.in_channels;
#if POINTWISE
  __global const T *const block =
      AT(weights) + (int)get_group_id(2) * a.in_channels * BLOCK + (int)get_local_id(0) * VECTOR;
#else
  __global const T *const block =
      AT(weights) + (int)get_group_id(2) * (a.kd * a.kh * a.kw * a.in_channels * BLOCK) +
      (int)get_local_id(0) * VECTOR;
  __global const T *const zeros = AT(weights) + a.zeros;
  const int run = a.merged ? a.kw * a.in_channels : a.in_channels, runs = a.merged ? 1 : a.kw;
  const int inside_y = a.ih - (a.kh - 1) * a.dh, inside_x = a.iw - (a.kw - 1) * a.dw;
  // Position of the next pixel; walks along rows, slices and images.
  const int pixel = min(first * TILE_P, a.pixels - 1);
  int x = pixel % a.ow, y = pixel / a.ow, n = y / a.oh;
  y -= n * a.oh;
#if DEPTH
  const int inside_z = a.id - (a.kd - 1) * a.dd;
  int z = n % a.od;
  n /= a.od;
#endif
#endif
  for (int tile = first; tile < last; ++tile) {
    const int left = a.pixels - tile * TILE_P;
#define CLEAR_(p, k) FV acc##p##_##k = 0;
#define CLEAR(p) REPEAT_WITH(VECTORS, p, CLEAR_)
    REPEAT(TILE_P, CLEAR)
    __global const T *w = block;

#if POINTWISE
    // Pixels past the end repeat the last one; they are not stored.
#define POINT(p) \
  __global const T *const r##p = start + min(tile * TILE_P + p, a.pixels - 1) * a.in_w;
    REPEAT(TILE_P, POINT)
    RUN(a.in_channels)
#else

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
#define OFFSET_Z(p) +iz##p *a.in_d
#define INSIDE_Z(p) &(iz##p >= 0) & (iz##p < inside_z)
#define VALID_Z(p) &((uint)(iz##p + kz * a.dd) < (uint)a.id)
#define LOOP_Z for (int kz = 0; kz < a.kd; ++kz)
#define TAP_Z +kz *a.dd *a.in_d
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
    int inside = 1;
    REPEAT(TILE_P, PLACE)
    if (inside) {
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < runs; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
#define INNER(p) __global const T *const r##p = start + (at##p + tap);
          REPEAT(TILE_P, INNER)
          RUN(run)
        }
    } else {
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
          int any = 0;
#define BORDER(p)                                                           \
  const int valid##p = ((uint)(iy##p + ky * a.dh) < (uint)a.ih) &           \
                       ((uint)(ix##p + kx * a.dw) < (uint)a.iw) VALID_Z(p); \
  __global const T *const r##p = valid##p ? start + (at##p + tap) : zeros;  \
  any |= valid##p;
          REPEAT(TILE_P, BORDER)
          if (any)
            RUN(a.in_channels)
          else
            w += a.in_channels * BLOCK;
        }
    }
#endif

#if POINTWISE
#define PIXEL_OFFSET(p) (tile * TILE_P + p) * a.out_w
#if FLAT_TAIL
#define TAIL_N(p) 0
#define TAIL_Y(p) 0
#define TAIL_X(p) tile *TILE_P + p
#else
#define TAIL_N(p) (tile * TILE_P + p) / (a.oh * a.ow)
#define TAIL_Y(p) (tile * TILE_P + p) / a.ow % a.oh
#define TAIL_X(p) (tile * TILE_P + p) % a.ow
#endif
#else
#if DEPTH
#define PIXEL_OFFSET(p) n##p *a.out_n + z##p *a.out_d + y##p *a.out_h + x##p *a.out_w
#else
#define PIXEL_OFFSET(p) n##p *a.out_n + y##p *a.out_h + x##p *a.out_w
#endif
#define TAIL_N(p) n##p
#define TAIL_Y(p) y##p
#define TAIL_X(p) x##p
#endif
#define STORE_(p, k)                                                                    \
  if (lane_c + k * LANES * VECTOR < a.out_channels) {                                   \
    const int channels_left = a.out_channels - lane_c - k * LANES * VECTOR;             \
    const int c = group * a.out_channels + lane_c + k * LANES * VECTOR;                 \
    const FV v = TAIL(acc##p##_##k, TAIL_N(p), TAIL_Y(p), TAIL_X(p), c, channels_left); \
    FN(store)(v, AT(out) + PIXEL_OFFSET(p) + c, channels_left);                         \
  }
#if SLICES > 1
// Slices take turns at the pixels.
#define SPILL_(p, k) STOREV(float, VECTOR, acc##p##_##k, own + (p * VECTORS + k) * VECTOR);
#define SPILL(p) REPEAT_WITH(VECTORS, p, SPILL_)
#define GATHER_(p, k)                                                    \
  acc##p##_##k = LOADV(float, VECTOR, all + (p * VECTORS + k) * VECTOR); \
  for (int i = 1; i < SLICES; ++i)                                       \
    acc##p##_##k += LOADV(float, VECTOR,                                 \
                          all + (i * LANES * ROWS * TILE_P * VECTORS + p * VECTORS + k) * VECTOR);
#define STORE(p)                         \
  if (p < left && p % SLICES == slice) { \
    REPEAT_WITH(VECTORS, p, GATHER_)     \
    REPEAT_WITH(VECTORS, p, STORE_)      \
  }
    const int item = get_local_id(1) * LANES + get_local_id(0);
    __local float *const all = sums + item * (TILE_P * VECTORS * VECTOR);
    __local float *const own = all + slice * (LANES * ROWS * TILE_P * VECTORS * VECTOR);
    REPEAT(TILE_P, SPILL)
    barrier(CLK_LOCAL_MEM_FENCE);
    REPEAT(TILE_P, STORE)
    if (tile + 1 < last) barrier(CLK_LOCAL_MEM_FENCE);
#elif ROLLED
    // A loop over all results: written out for each of them, the tail is most of what a CPU's driver
    // has to compile.
    FV results[TILE_P * VECTORS];
    int offsets[TILE_P], ns[TILE_P], ys[TILE_P], xs[TILE_P];
#define KEEP_(p, k) results[p * VECTORS + k] = acc##p##_##k;
#define KEEP(p)                \
  REPEAT_WITH(VECTORS, p, KEEP_) \
  offsets[p] = PIXEL_OFFSET(p); \
  ns[p] = TAIL_N(p), ys[p] = TAIL_Y(p), xs[p] = TAIL_X(p);
    REPEAT(TILE_P, KEEP)
    const int stored = min(left, TILE_P);
#pragma unroll 1
    for (int p = 0; p < stored; ++p)
#pragma unroll 1
      for (int k = 0; k < VECTORS; ++k) {
        const int channels_left = a.out_channels - lane_c - k * LANES * VECTOR;
        if (channels_left <= 0) break;
        const int c = group * a.out_channels + lane_c + k * LANES * VECTOR;
        const FV v = TAIL(results[p * VECTORS + k], ns[p], ys[p], xs[p], c, channels_left);
        FN(store)(v, AT(out) + offsets[p] + c, channels_left);
      }
#else
#define STORE(p)                    \
  if (p < left) {                   \
    REPEAT_WITH(VECTORS, p, STORE_) \
  }
    REPEAT(TILE_P, STORE)
#endif
  }
}
