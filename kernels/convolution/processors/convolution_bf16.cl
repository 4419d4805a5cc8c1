// Convolves floats with products of bf16 and sums of f32. An instruction adds two products to each
// of 16 sums. The values that an output reads (all taps) are converted to bf16 and copied to a row
// of a matrix first. A work-group computes units of pixels, each with all output channels of its
// part, so that copies and weights stay in its core's cache. A row is cut into chunks, whose
// distance from pixel to pixel is a constant: [chunk][pixel][ROW]. Weights are packed as
// [group][block of channels][depth / 2][VECTORS][16][2], with zeros for missing values and
// channels. Defines:
//   T, STORED         type of the output, and how it is stored
//   TILE_P, VECTORS   pixels, and vectors of 16 channels, whose sums are in registers
//   AVX512_BF16       instructions; else plain C takes their place, for tests on any device

typedef struct {
#include "kernels/convolution/processors/convolution_bf16_args.cl"
} FN(Args);

#define FV float16
#define UNIT (TILE_P * 8)  // most pixels of a unit
#define BLOCK (VECTORS * 16)
#define CHUNK 512         // values
#define ROW (CHUNK + 32)  // Rows at a power of two would compete for the same cache sets.

#if AVX512_BF16
#define AS_BF16(V)                                            \
  inline ushort##V FN(as_bf16_##V)(float##V x) {              \
    ushort##V rounded;                                        \
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(x)); \
    return rounded;                                           \
  }
inline float16 FN(add_products)(float16 sums, uint pixel, uint16 weights) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"((uint16)(pixel)), "v"(weights));
  return sums;
}
// Makes sure that copies are in memory before they are read as pairs.
#define COPIED __asm__ volatile("" ::: "memory")
#else
// Rounds to the nearest value, ties to even; NaN stays NaN.
#define AS_BF16(V)                                                          \
  inline ushort##V FN(as_bf16_##V)(float##V x) {                            \
    const uint##V bits = as_uint##V(x);                                     \
    const uint##V rounded = bits + 0x7fff + (bits >> 16 & 1);               \
    return convert_ushort##V((isnan(x) ? bits | 0x400000 : rounded) >> 16); \
  }
inline float16 FN(add_products)(float16 sums, uint pixel, uint16 weights) {
  sums += as_float(pixel << 16) * as_float16(weights << 16);
  return sums + as_float(pixel & 0xffff0000) * as_float16(weights & 0xffff0000);
}
#define COPIED mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
AS_BF16(16)
AS_BF16(8)

// Stores at any alignment: vstore16() stores value by value on PoCL.
typedef struct __attribute__((packed)) {
  ulong4 v;
} FN(Values16);
typedef struct __attribute__((packed)) {
  ulong2 v;
} FN(Values8);
#define MOVE(V, i)                       \
  *(__global FN(Values##V)*)(to + (i)) = \
      (FN(Values##V)){AS_ULONGS_##V(FN(as_bf16_##V)(vload##V(0, from + (i))))};
#define AS_ULONGS_16 as_ulong4
#define AS_ULONGS_8 as_ulong2
// The last move overlaps the one before it.
#define MOVES(V)                                      \
  {                                                   \
    for (int i = 0; i + V < count; i += V) MOVE(V, i) \
    MOVE(V, count - V)                                \
  }
inline void FN(convert)(__global ushort* to, __global const float* from, int count) {
  if (count >= 16) {
    MOVES(16)
  } else if (count >= 8) {
    MOVES(8)
  } else {
    for (int i = 0; i < count; ++i) to[i] = FN(as_bf16_8)((float8)(from[i])).s0;
  }
}

// Writes `count` values at `place` of the row that begins at `to`; zeros unless `inside`. The
// chunks of a row are `apart` values apart.
inline void FN(copy)(__global ushort* to, int apart, int place, __global const float* from,
                     int count, int inside) {
  while (count > 0) {
    const int at = place % CHUNK, run = min(count, CHUNK - at);
    __global ushort* const part = to + place / CHUNK * apart + at;
    if (inside)
      FN(convert)(part, from, run);
    else
      for (int i = 0; i < run; ++i) part[i] = 0;
    place += run;
    from += run;
    count -= run;
  }
}

// Copies the values that the output at n, y, x reads. Handles a row that fits a chunk and has one
// run of whole vectors more directly.
inline void FN(copy_pixel)(__global ushort* to, int apart, __global const float* in, int n, int y,
                           int x, const FN(Args) * a) {
  const int iy = y * a->sh - a->ph, ix = x * a->sw - a->pw;
  const int run = a->kw * a->in_channels;
  const int whole = a->merged & (ix >= 0) & (ix + a->kw <= a->iw);
  __global const float* row = in + n * a->in_n + iy * a->in_h + ix * a->in_w;
  int place = 0;
  if (a->direct) {
    FN(convert)(to, row, a->depth);
    return;
  }
  for (int ky = 0; ky < a->kh; ++ky) {
    const int inside = (uint)(iy + ky * a->dh) < (uint)a->ih;
    if (inside & whole) {
      FN(copy)(to, apart, place, row, run, 1);
      place += run;
    } else {
      for (int kx = 0; kx < a->kw; ++kx) {
        FN(copy)
        (to, apart, place, row + kx * a->dw * a->in_w, a->in_channels,
         inside & ((uint)(ix + kx * a->dw) < (uint)a->iw));
        place += a->in_channels;
      }
    }
    row += a->dh * a->in_h;
  }
  if (place % 2 != 0) to[place / CHUNK * apart + place % CHUNK] = 0;
}

// Stores the first `left` channels of v.
void FN(store)(FV v, __global T* to, int left) { STORE_FIRST(STORED, 16, v, to, left) }
#define BEGIN_(p, k) float16 sum##p##_##k = 0;
#define BEGIN(p) REPEAT_WITH(VECTORS, p, BEGIN_)
#define WEIGHTS_(p, k) const uint16 weights##k = vload16(k, w);
#define ADD_(p, k) sum##p##_##k = FN(add_products)(sum##p##_##k, pixel##p, weights##k);
#define ADD(p)                              \
  const uint pixel##p = pairs[p * ROW / 2]; \
  REPEAT_WITH(VECTORS, p, ADD_)
#define KEEP_(p, k) sums[p * VECTORS + k] = sum##p##_##k;
#define KEEP(p) REPEAT_WITH(VECTORS, p, KEEP_)

// clang-format off: KERNEL begins a line (kernels/common/types.cl)
WORK_GROUP(1, 1, 1)
KERNEL(IN(float, in), IN(uint, weights), OUT(ushort, scratch), OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  // clang-format on
  float16 sums[TILE_P * VECTORS];
  __global ushort* const copies = AT(scratch) + (int)get_group_id(0) * a.scratch;
  const int apart = a.unit_pixels * ROW, block_size = (a.depth + 1) / 2 * BLOCK;
  for (int work = get_group_id(0); work < a.works; work += a.workers) {
    const int unit = work % a.units, share = work / a.units;
    const int group = share / a.parts, part = share - group * a.parts;
    const int first = unit * a.unit_pixels, count = min(a.pixels - first, a.unit_pixels);
    int places[UNIT], ns[UNIT], ys[UNIT], xs[UNIT];
    int x = first % a.ow, y = first / a.ow, n = y / a.oh;
    y -= n * a.oh;
    for (int p = 0; p < count; ++p) {
      FN(copy_pixel)(copies + p * ROW, apart, AT(in) + group * a.in_channels, n, y, x, &a);
      places[p] = n * a.out_n + y * a.out_h + x * a.out_w;
      ns[p] = n, ys[p] = y, xs[p] = x;
      if (++x == a.ow) {
        x = 0;
        if (++y == a.oh) {
          y = 0;
          ++n;
        }
      }
    }
    COPIED;
    const int end = (part + 1) * a.blocks / a.parts;
    for (int block = part * a.blocks / a.parts; block < end; ++block) {
      for (int t = 0; t < count; t += TILE_P) {
        __global const uint* w = AT(weights) + (group * a.blocks + block) * block_size;
        REPEAT(TILE_P, BEGIN)
        for (int chunk = 0; chunk * CHUNK < a.depth; ++chunk) {
          __global const uint* pairs = (__global const uint*)(copies + chunk * apart + t * ROW);
          const int steps = (min(a.depth - chunk * CHUNK, CHUNK) + 1) / 2;
          for (int i = 0; i < steps; ++i) {
            REPEAT_WITH(VECTORS, 0, WEIGHTS_)
            REPEAT(TILE_P, ADD)
            ++pairs;
            w += BLOCK;
          }
        }
        REPEAT(TILE_P, KEEP)
        const int stored = min(count - t, TILE_P);
#pragma unroll 1
        for (int k = 0; k < VECTORS; ++k) {
          const int channels_left = a.out_channels - block * BLOCK - k * 16;
          if (channels_left <= 0) break;
          const int c = group * a.out_channels + block * BLOCK + k * 16;
#pragma unroll 1
          for (int p = 0; p < stored; ++p) {
            const int at = t + p;
            const FV v = TAIL(sums[p * VECTORS + k], ns[at], ys[at], xs[at], c, channels_left);
            FN(store)(v, AT(out) + places[at] + c, channels_left);
          }
        }
      }
    }
  }
}
