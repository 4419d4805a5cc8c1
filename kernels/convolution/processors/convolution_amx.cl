// Convolves bytes by the tiles of AMX. An instruction adds, to a tile of 16 pixels x 16 output
// channels, the products of up to 64 bytes of each. The bytes that an output reads (all taps) are
// one row of a matrix; rows that are not evenly spaced in the input, or reach across its border,
// are copied first. A work-group computes units of up to UNIT tiles of 16 pixels, each with all
// output channels of its part, so that copies and weights stay in its core's cache. Weights are
// packed as [group][block of channels][step][TILES_C][step / 4][16][4], with zeros for missing
// bytes and channels. Defines:
//   T, STORED          type of the output, and how it is stored
//   TILES_P, TILES_C   tiles of pixels and of channels whose sums are in registers
//   AMX                instructions; else plain C takes their place, for tests on any device

typedef struct {
#include "kernels/convolution/processors/convolution_amx_args.cl"
} FN(Args);

#define FV float16
#define UNIT 8
#define BLOCK (TILES_C * 16)

// The numbers of tile registers.
#define SUMS(p, c) ((p)*TILES_C + (c))
#define PIXELS(p) (4 + (p) % 2)
#define WEIGHTS(c) (6 + (c))

#if AMX
#define TILES
#define CONFIGURE(config) __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory")
#define LOAD_TILE(t, from, stride) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"((long)(stride)), "i"(t))
#define ADD_PRODUCTS(sums, pixels, weights) \
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(pixels), "i"(weights))
#define STORE_TILE(t, to, stride)                                                          \
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"((long)(stride)), "i"(t) \
                   : "memory")
#define RELEASE __asm__ volatile("tilerelease" ::: "memory")
// Makes sure that copies are in memory before a tile is loaded from there.
#define COPIED __asm__ volatile("" ::: "memory")
#else
#define TILES int registers[8][256];
#define CONFIGURE(config)
void FN(load_tile)(int* tile, const uchar* config, int t, __global const uchar* from, long stride) {
  for (int row = 0; row < config[48 + t]; ++row)
    for (int i = 0; i < config[16 + 2 * t]; ++i)
      ((uchar*)(tile + row * 16))[i] = from[row * stride + i];
}
void FN(add_products)(int* sums, const int* pixels, const int* weights, int rows, int bytes) {
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < bytes; ++i)
      for (int c = 0; c < 16; ++c)
        sums[row * 16 + c] += ((const uchar*)(pixels + row * 16))[i] *
                              ((const char*)(weights + i / 4 * 16 + c))[i % 4];
}
#define LOAD_TILE(t, from, stride) \
  FN(load_tile)(registers[t], config, t, (__global const uchar*)(from), stride)
#define ADD_PRODUCTS(sums, pixels, weights) \
  FN(add_products)(registers[sums], registers[pixels], registers[weights], a.rows, a.step)
#define STORE_TILE(t, to, stride)        \
  for (int row = 0; row < a.rows; ++row) \
    for (int i = 0; i < 16; ++i) (to)[row * ((stride) / 4) + i] = registers[t][row * 16 + i];
#define RELEASE
#define COPIED
#endif

// Types for moving 64, 32, ... bytes at any alignment.
typedef struct __attribute__((packed)) {
  ulong8 v;
} FN(Bytes64);
typedef struct __attribute__((packed)) {
  ulong4 v;
} FN(Bytes32);
typedef struct __attribute__((packed)) {
  ulong2 v;
} FN(Bytes16);
typedef struct __attribute__((packed)) {
  ulong v;
} FN(Bytes8);
typedef struct __attribute__((packed)) {
  uint v;
} FN(Bytes4);
#define MOVE(bytes, i) \
  *(__global FN(Bytes##bytes)*)(to + (i)) = *(__global const FN(Bytes##bytes)*)(from + (i));
// The last move overlaps the one before it.
#define MOVES(bytes)                                              \
  {                                                               \
    for (int i = 0; i + bytes < count; i += bytes) MOVE(bytes, i) \
    MOVE(bytes, count - bytes)                                    \
  }
inline void FN(copy)(__global uchar* to, __global const uchar* from, int count) {
  if (count >= 64) {
    MOVES(64)
  } else if (count >= 32) {
    MOVES(32)
  } else if (count >= 16) {
    MOVES(16)
  } else if (count >= 8) {
    MOVES(8)
  } else if (count >= 4) {
    MOVES(4)
  } else {
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
}

// Copies the bytes that the output at n, y, x reads.
inline void FN(copy_pixel)(__global uchar* to, __global const uchar* in, int n, int y, int x,
                           const FN(Args) * a) {
  const int iy = y * a->sh - a->ph, ix = x * a->sw - a->pw;
  const int run = a->kw * a->in_channels;
  const int whole = a->merged & (ix >= 0) & (ix + a->kw <= a->iw);
  __global const uchar* row = in + n * a->in_n + iy * a->in_h + ix * a->in_w;
  for (int ky = 0; ky < a->kh; ++ky) {
    const int inside = (uint)(iy + ky * a->dh) < (uint)a->ih;
    if (inside & whole) {
      FN(copy)(to, row, run);
      to += run;
    } else {
      for (int kx = 0; kx < a->kw; ++kx) {
        if (inside & ((uint)(ix + kx * a->dw) < (uint)a->iw))
          FN(copy)(to, row + kx * a->dw * a->in_w, a->in_channels);
        else
          for (int i = 0; i < a->in_channels; ++i) to[i] = a->zero;
        to += a->in_channels;
      }
    }
    row += a->dh * a->in_h;
  }
}

// Stores the first `left` channels of v.
void FN(store)(FV v, __global T* to, int left) { STORE_FIRST(STORED, 16, v, to, left) }

#define FROM(p) __global const uchar* pixels##p = from[t + p];
#define START_(p, c) LOAD_TILE(SUMS(p, c), start + c * 16, 0);
#define START(p) REPEAT_WITH(TILES_C, p, START_)
#define WEIGHTS_(p, c) LOAD_TILE(WEIGHTS(c), w + c * 16 * a.step, 64);
#define ADD_(p, c) ADD_PRODUCTS(SUMS(p, c), PIXELS(p), WEIGHTS(c));
#define ADD(p)                                     \
  LOAD_TILE(PIXELS(p), pixels##p, strides[t + p]); \
  pixels##p += a.step;                             \
  REPEAT_WITH(TILES_C, p, ADD_)
#define KEEP_(p, c) STORE_TILE(SUMS(p, c), sums + (p * 16 * TILES_C + c) * 16, BLOCK * 4);
#define KEEP(p) REPEAT_WITH(TILES_C, p, KEEP_)

// A work-group configures its core's tiles, and releases them at its end.
WORK_GROUP(1, 1, 1)
KERNEL(IN(uchar, in), IN(char, weights), IN(int, start_sums), OUT(uchar, scratch), OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  // Configures the palette; then for each tile the bytes of a row and the number of rows.
  uchar config[64] __attribute__((aligned(64)));
  for (int i = 0; i < 64; ++i) config[i] = i == 0;
  for (int t = 0; t < 8; ++t) {
    config[16 + 2 * t] = t == PIXELS(0) || t == PIXELS(1) ? a.step : 64;
    config[48 + t] = t < WEIGHTS(0) ? a.rows : a.step / 4;
  }
  TILES
  CONFIGURE(config);
  int sums[TILES_P * TILES_C * 256] __attribute__((aligned(64)));
  __global uchar* const copies = AT(scratch) + (int)get_group_id(0) * a.scratch;
  for (int work = get_group_id(0); work < a.works; work += a.workers) {
    const int unit = work % a.units, share = work / a.units;
    const int group = share / a.parts, part = share - group * a.parts;
    __global const uchar* const data = AT(in) + group * a.in_channels;
    const int first = unit * a.unit_tiles * 16;
    const int count = min(a.pixels - first, a.unit_tiles * 16);
    __global const uchar* from[UNIT];
    int strides[UNIT], places[UNIT * 16], ns[UNIT * 16], ys[UNIT * 16], xs[UNIT * 16];
    int x = first % a.ow, y = first / a.ow, n = y / a.oh;
    y -= n * a.oh;
    for (int t = 0; t * 16 < count; ++t) {
      const int left = min(count - t * 16, 16), at = x * a.in_w;
      const int copied = (left < a.rows) | (x + left > a.ow) |
                         (at + (a.rows - 1) * a.in_w + a.steps * a.step > a.readable);
      from[t] = copied ? copies + t * 16 * a.copy_row : data + (y * a.in_h + at);
      strides[t] = copied ? a.copy_row : a.in_w;
      for (int p = t * 16; p < t * 16 + left; ++p) {
        if (copied) FN(copy_pixel)(copies + p * a.copy_row, data, n, y, x, &a);
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
    }
    const int tiles = (count + 15) / 16;
    for (int t = tiles; t % TILES_P != 0; ++t) {  // computed, but not stored
      from[t] = from[tiles - 1];
      strides[t] = strides[tiles - 1];
    }
    COPIED;
    const int end = (part + 1) * a.blocks / a.parts;
    for (int block = part * a.blocks / a.parts; block < end; ++block) {
      const int number = group * a.blocks + block;
      __global const int* const start = AT(start_sums) + number * BLOCK;
      for (int t = 0; t < tiles; t += TILES_P) {
        __global const char* w = AT(weights) + number * a.steps * a.step * BLOCK;
        REPEAT(TILES_P, FROM)
        REPEAT(TILES_P, START)
        for (int i = 0; i < a.steps; ++i) {
          REPEAT_WITH(TILES_C, 0, WEIGHTS_)
          REPEAT(TILES_P, ADD)
          w += a.step * BLOCK;
        }
        REPEAT(TILES_P, KEEP)
        const int stored = min(count - t * 16, TILES_P * 16);
#pragma unroll 1
        for (int k = 0; k < TILES_C; ++k) {
          const int channels_left = a.out_channels - block * BLOCK - k * 16;
          if (channels_left <= 0) break;
          const int c = group * a.out_channels + block * BLOCK + k * 16;
#pragma unroll 1
          for (int p = 0; p < stored; ++p) {
            const int at = t * 16 + p;
            const FV v = TAIL(convert_float16(*(const int16*)(sums + (p * TILES_C + k) * 16)),
                              ns[at], ys[at], xs[at], c, channels_left);
            FN(store)(v, AT(out) + places[at] + c, channels_left);
          }
        }
      }
    }
  }
  RELEASE;
}
