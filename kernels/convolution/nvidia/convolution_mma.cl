// Convolution by matrix instructions on channels-last activations of halves or bytes: a warp of 32
// work-items multiplies TILE_P x 16 pixels by VECTORS x 4 x VECTOR output channels, loading
// directly from global memory into registers. All data are words of 32 bits with two halves or four
// bytes each. One step of the sum uses 4 x WORDS words (of one tap) of each pixel: work-item t of
// four loads WORDS adjacent ones. The weights are packed to match, as [group][block][step][tile of
// eight channels][work-item][WORDS], with zeros for missing channels and taps. The channels of a
// tile of eight are chosen so that a work-item ends up with VECTOR adjacent channels of a pixel.
// Defines besides T (of the output), WORDS, VECTOR, VECTORS and TILE_P:
//   BYTES      the data are bytes with integer sums that begin with start_sums; else halves
//   SHIFTED    of bytes: adds the channel's shift times the sum of the bytes to each sum
//   PIECE      bytes that a work-item reads at once: 4 * WORDS, or with 2 WORDS 4 or 2, if the channels of
//              pixels are no more whole than that
//   AHEAD      number of steps whose words are being loaded
//   WARPS_P, WARPS_C, SLICES  warps of a work-group: along pixels x blocks of channels x slices of
//              the steps, whose sums are added in local memory
//   POINTWISE  1x1; input and output are each one long row of pixels
//   FLAT_TAIL  the tail's operands are long rows of pixels as well
//   ALIGNED    an output vector lies at a multiple of its size
//   PAIRS      pairs of output channels lie at multiples of their size
//   MMA_PTX    inline PTX; else local memory is used to emulate the instruction

typedef struct {
#include "kernels/convolution/nvidia/convolution_mma_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define WORDV CAT(uint, WORDS)
#define TILES (VECTORS * VECTOR / 2)  // tiles of eight channels
#define WARPS (WARPS_P * WARPS_C * SLICES)
#include "kernels/common/mma.cl"
#define STEP (4 * WORDS * PER_WORD)  // input channels per step

WORK_GROUP(32, WARPS_P* WARPS_C, SLICES)
KERNEL(IN(D, in), IN(uint, weights), IN(int, start_sums), SHIFTS OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  const int lane = get_local_id(0), quarter = lane % 4;
  const int warp = get_local_id(1), slice = get_local_id(2);
  const int groups_c = (a.blocks + WARPS_C - 1) / WARPS_C;
  const int group = (int)get_group_id(1) / groups_c;
  // Warps past the last block repeat it, and rows past the last pixel repeat that pixel; neither is
  // stored.
  const int wanted_block = ((int)get_group_id(1) - group * groups_c) * WARPS_C + warp % WARPS_C;
  const int block = min(wanted_block, a.blocks - 1);
  const int first_pixel =
      ((int)get_group_id(0) * WARPS_P + warp / WARPS_C) * (16 * TILE_P) + lane / 4;
#if !MMA_PTX
  SHARED(uint, scratches, WARPS * 32 * 6);
  __local uint* const scratch = scratches + (slice * (WARPS_P * WARPS_C) + warp) * (32 * 6);
#endif

  SUM sums[TILE_P][TILES][4];
  const int first_channel = block * (4 * VECTOR * VECTORS) + quarter * VECTOR;
  UNROLL for (int j = 0; j < TILES; ++j) {
#if BYTES
// Tile j contributes two channels of one vector.
#define FIRST_OF_TILE(j)                                                                         \
  (group * a.blocks * (4 * VECTOR * VECTORS) + first_channel + j / (VECTOR / 2) * (4 * VECTOR) + \
   j % (VECTOR / 2) * 2)
    __global const int* const start = AT(start_sums) + FIRST_OF_TILE(j);
    const int s0 = slice ? 0 : start[0], s1 = slice ? 0 : start[1];
#else
    const float s0 = 0, s1 = 0;
#endif
    UNROLL for (int i = 0; i < TILE_P; ++i) {
      sums[i][j][0] = sums[i][j][2] = s0;
      sums[i][j][1] = sums[i][j][3] = s1;
    }
  }

  // This work-item reads rows 0, 8, 16 ... of the tile's pixels.
  __global const D* const data = AT(in) + group * a.in_channels + quarter * (WORDS * PER_WORD);
  const int channels = a.in_channels - quarter * (WORDS * PER_WORD);
  int at[2 * TILE_P];
#if POINTWISE
  UNROLL for (int i = 0; i < 2 * TILE_P; ++i) {
    at[i] = min(first_pixel + i * 8, a.pixels - 1) * a.in_w;
  }
  int channel = slice * a.steps * STEP;
#define LEFT (channels - channel)
#define INSIDE(i) (channel < channels)
#define PLACE(i) at[i] + channel
#define NEXT_TAP
#else
  int iy[2 * TILE_P], ix[2 * TILE_P];
  UNROLL for (int i = 0; i < 2 * TILE_P; ++i) {
    const int pixel = min(first_pixel + i * 8, a.pixels - 1);
    const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
    iy[i] = (line - n * a.oh) * a.sh - a.ph;
    ix[i] = (pixel - line * a.ow) * a.sw - a.pw;
    at[i] = n * a.in_n + iy[i] * a.in_h + ix[i] * a.in_w;
  }
  const int tap = slice * a.steps / a.parts, all = a.parts * STEP;
  int ky = tap / a.kw, kx = tap % a.kw, channel = slice * a.steps % a.parts * STEP;
#define LEFT (ky < a.kh ? channels - channel : 0)
#define INSIDE(i)                                                                  \
  ((channel < channels) & (ky < a.kh) & ((uint)(iy[i] + ky * a.dh) < (uint)a.ih) & \
   ((uint)(ix[i] + kx * a.dw) < (uint)a.iw))
#define PLACE(i) at[i] + ky* a.dh* a.in_h + kx* a.dw* a.in_w + channel
// There are no branches: PoCL 3.1 miscompiles them in loops with barriers when SLICES > 1.
#define NEXT_TAP                       \
  channel -= channel >= all ? all : 0; \
  kx += channel == 0;                  \
  ky += kx == a.kw;                    \
  kx -= kx == a.kw ? kx : 0;
#endif
  __global const WORDV* weight =
      (__global const WORDV*)AT(weights) +
      ((group * a.blocks + block) * SLICES + slice) * a.steps * (TILES * 32) + lane;

#if PIECE == 2
#define PER_PIECE (PER_WORD / 2)
#define READ_PIXEL(s, i)                                                             \
  pixel_words[s][i] = (WORDV)(a.outside);                                            \
  if (INSIDE(i)) {                                                                   \
    __global const ushort* const from = (__global const ushort*)(data + (PLACE(i))); \
    const int left = LEFT;                                                           \
    uint first = from[0], second = 0;                                                \
    if (left > PER_PIECE) first |= (uint)from[1] << 16;                              \
    if (left > 2 * PER_PIECE) second = from[2];                                      \
    if (left > 3 * PER_PIECE) second |= (uint)from[3] << 16;                         \
    pixel_words[s][i] = (uint2)(first, second);                                      \
  }
#elif PIECE == 4
#define READ_PIXEL(s, i)                                                         \
  pixel_words[s][i] = (WORDV)(a.outside);                                        \
  if (INSIDE(i)) {                                                               \
    __global const uint* const from = (__global const uint*)(data + (PLACE(i))); \
    pixel_words[s][i].s0 = from[0];                                              \
    if (LEFT > PER_WORD) pixel_words[s][i].s1 = from[1];                         \
  }
#else
#define READ_PIXEL(s, i)                  \
  pixel_words[s][i] = (WORDV)(a.outside); \
  if (INSIDE(i)) pixel_words[s][i] = *(__global const WORDV*)(data + (PLACE(i)));
#endif

  // Loads AHEAD steps while multiplying one.
  WORDV pixel_words[AHEAD][2 * TILE_P], weight_words[AHEAD][TILES];
#if SHIFTED
  int totals[TILE_P][4], left_bytes[AHEAD];
  UNROLL for (int i = 0; i < TILE_P; ++i) {
    UNROLL for (int k = 0; k < 4; ++k) { totals[i][k] = 0; }
  }
#define READ_LEFT(s) left_bytes[s] = LEFT;
#define ADD_UP(s, even, odd, at)                                                             \
  UNROLL for (int i = 0; i < TILE_P; ++i) {                                                  \
    FN(mma)                                                                                  \
    (totals[i], pixel_words[s][2 * i].even, pixel_words[s][2 * i + 1].even,                  \
     pixel_words[s][2 * i].odd, pixel_words[s][2 * i + 1].odd, FN(ones)(left_bytes[s] - at), \
     FN(ones)(left_bytes[s] - at - 4) SCRATCH);                                              \
  }
#else
#define READ_LEFT(s)
#define ADD_UP(s, even, odd, at)
#endif
#define READ(s)                                                                                 \
  {                                                                                             \
    UNROLL for (int i = 0; i < 2 * TILE_P; ++i){READ_PIXEL(s, i)} UNROLL for (int j = 0;        \
                                                                              j < TILES; ++j) { \
      weight_words[s][j] = weight[j * 32];                                                      \
    }                                                                                           \
    READ_LEFT(s)                                                                                \
    weight += TILES * 32;                                                                       \
    channel += STEP;                                                                            \
    NEXT_TAP                                                                                    \
  }
#define MULTIPLY(s, even, odd, at)                                                        \
  UNROLL for (int i = 0; i < TILE_P; ++i) {                                               \
    UNROLL for (int j = 0; j < TILES; ++j) {                                              \
      FN(mma)                                                                             \
      (sums[i][j], pixel_words[s][2 * i].even, pixel_words[s][2 * i + 1].even,            \
       pixel_words[s][2 * i].odd, pixel_words[s][2 * i + 1].odd, weight_words[s][j].even, \
       weight_words[s][j].odd SCRATCH);                                                   \
    }                                                                                     \
  }                                                                                       \
  ADD_UP(s, even, odd, at)
  UNROLL for (int s = 0; s < AHEAD; ++s) {
    if (s < a.steps) READ(s)
  }
  for (int step = 0; step < a.steps; step += AHEAD) {
    UNROLL for (int s = 0; s < AHEAD; ++s) {
      if (step + s < a.steps) {
        MULTIPLY(s, s0, s1, 0)
#if WORDS == 4
        MULTIPLY(s, s2, s3, 8)
#endif
        if (step + s + AHEAD < a.steps) READ(s)
      }
    }
  }

#if SHIFTED
  UNROLL for (int j = 0; j < TILES; ++j) {
    __global const int* const shift = AT(shifts) + FIRST_OF_TILE(j);
    UNROLL for (int i = 0; i < TILE_P; ++i) {
      UNROLL for (int k = 0; k < 4; ++k) { sums[i][j][k] += shift[k % 2] * totals[i][k]; }
    }
  }
#endif

#if SLICES > 1
#define ITEMS (WARPS_P * WARPS_C * 32)
  SHARED(SUM, others, (SLICES - 1) * TILE_P * TILES * 4 * ITEMS);
#define OTHER(s) others[((s) * (TILE_P * TILES * 4) + (i * TILES + j) * 4 + k) * ITEMS + item]
  const int item = warp * 32 + lane;
#define EACH_SUM(action)                            \
  UNROLL for (int i = 0; i < TILE_P; ++i) {         \
    UNROLL for (int j = 0; j < TILES; ++j) {        \
      UNROLL for (int k = 0; k < 4; ++k) { action } \
    }                                               \
  }
  if (slice > 0) EACH_SUM(OTHER(slice - 1) = sums[i][j][k];)
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice > 0) return;
  for (int s = 0; s < SLICES - 1; ++s) EACH_SUM(sums[i][j][k] += OTHER(s);)
#endif
  if (wanted_block != block) return;

#define ROWS_OF_ITEM (2 * TILE_P)
#define SUM_OF(i, k, j) sums[(i) / 2][(k) * (VECTOR / 2) + (j) / 2][(i) % 2 * 2 + (j) % 2]
#include "kernels/common/mma_store.cl"
}
