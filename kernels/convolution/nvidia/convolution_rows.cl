// Convolution by matrix instructions of pixels whose channels are no whole words, such as the three of an
// image: what a row of the kernel reads is then one run of adjacent elements. A work-group copies the rows
// that LINES lines of WIDE output pixels read to local memory. Each warp of 32 work-items then computes
// a line: it multiplies TILE_P x 16 pixels by VECTORS x 4 x VECTOR output channels at a time, all data in
// words of 32 bits. The sum goes over the words of all runs, eight words a step. Factors are 0 where a run
// ends within a word, and past the last run. The weights are packed as [block][step][tile of eight
// channels][work-item][2], in the order of channels of convolution_mma.cl. Defines besides T (of the
// output), VECTOR, VECTORS, TILE_P, LINES, WIDE and those of common/mma.cl:
//   RUN, RUNS     elements of a run, and rows of the kernel
//   STEPS         number of steps of the sum
//   PIXEL         elements between two output pixels of a line
//   LINE, APART   rows between two lines of output pixels, and between two rows of the kernel
//   ROWS, PITCH   copied rows, and the elements of each, whole words
//   UNIT          elements that are copied at once; either all or none of them are inside the input
//   LEAD          number of elements in the copied rows before the tile's first pixel
//   COPIES        number of copies of the rows, if pixels begin within words: each begins PER_WORD
//   / COPIES
//                 elements later
//   ALIGNED       an output vector lies at a multiple of its size
//   WHOLE_BLOCKS  all channels of all blocks exist

typedef struct {
#include "kernels/convolution/nvidia/convolution_rows_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define TILES (VECTORS * VECTOR / 2)  // tiles of eight channels
#include "kernels/common/mma.cl"
#define SHIFT (PER_WORD / COPIES)
#define BEFORE (LEAD % PER_WORD)  // unused elements of a run's first word
#define RUN_WORDS ((BEFORE + RUN + PER_WORD - 1) / PER_WORD)
#define PITCH_WORDS (PITCH / PER_WORD)
#define COPY_WORDS (ROWS * PITCH_WORDS)
#if MMA_PTX
#define SCRATCH_WORDS 0
#define UNROLL_COPYING _Pragma("unroll 8")
#if STEPS <= 16
#define UNROLL_STEPS _Pragma("unroll")
#else
#define UNROLL_STEPS _Pragma("unroll 4")
#endif
#else
#define SCRATCH_WORDS (LINES * 32 * 6)
#define UNROLL_COPYING
#define UNROLL_STEPS
#endif

// Returns the place of word k of the sum, from the first word of a pixel on; for words past the end
// that of the last one.
inline int FN(place)(int k) {
  const int word = min(k, RUNS * RUN_WORDS - 1), run = word / RUN_WORDS;
  return word + run * (APART * PITCH_WORDS - RUN_WORDS);
}
#if SHIFTED
// Returns factors that sum up the bytes of word k.
inline uint FN(ones_of)(int k) {
  const int word = k % RUN_WORDS;
  if (k >= RUNS * RUN_WORDS) return 0;
  return FN(ones)(BEFORE + RUN - word * PER_WORD) & (word == 0 ? ~0u << (8 * BEFORE) : ~0u);
}
#endif

#if UNIT == 1
#define UNIT_TYPE ELEMENT
#define OUTSIDE (ELEMENT) a.outside
#elif UNIT == PER_WORD
#define UNIT_TYPE uint
#define OUTSIDE (uint) a.outside
#else
#define UNIT_TYPE uint2
#define OUTSIDE (uint2)(a.outside)
#endif

WORK_GROUP(32, LINES, 1)
KERNEL(IN(ELEMENT, in), IN(uint2, weights), IN(int, start_sums), SHIFTS OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  const int lane = get_local_id(0), quarter = lane % 4, warp = get_local_id(1);
  const int lines = (int)get_group_id(0) / a.tiles_w, n = lines / a.tiles_h;
  const int first_line = (lines - n * a.tiles_h) * LINES;
  const int first_x = ((int)get_group_id(0) - lines * a.tiles_w) * WIDE;
  SHARED(uint2, pairs, (COPIES * COPY_WORDS + SCRATCH_WORDS + 1) / 2);
  __local uint* const words = (__local uint*)pairs;
#if !MMA_PTX
  __local uint* const scratch = words + COPIES * COPY_WORDS + warp * (32 * 6);
#endif

  const int top = first_line * a.sh - a.ph, left = first_x * a.sw - a.pw - LEAD;
  __global const ELEMENT* const image = AT(in) + n * a.in_n;
#if COPIES > 1 && UNIT > 1
  // Words of the other copies begin in one word of the input and end in the next.
#define READ_WORD(ix)                                             \
  (((uint)iy < (uint)a.ih) & ((uint)(ix) < (uint)a.iw)            \
       ? *(__global const UNIT_TYPE*)(image + iy * a.in_h + (ix)) \
       : OUTSIDE)
  UNROLL_COPYING for (int i = warp * 32 + lane; i < COPY_WORDS; i += 32 * LINES) {
    const int row = i / PITCH_WORDS, column = i - row * PITCH_WORDS;
    const int iy = top + row, ix = left + column * PER_WORD;
    const uint word = READ_WORD(ix), next = READ_WORD(ix + PER_WORD);
    words[i] = word;
    UNROLL for (int c = 1; c < COPIES; ++c) {
      const int bits = c * SHIFT * (32 / PER_WORD);
      words[c * COPY_WORDS + i] = word >> bits | next << (32 - bits);
    }
  }
#else
  __local UNIT_TYPE* const units = (__local UNIT_TYPE*)words;
  UNROLL_COPYING for (int i = warp * 32 + lane; i < ROWS * (PITCH / UNIT); i += 32 * LINES) {
    const int row = i / (PITCH / UNIT), column = i - row * (PITCH / UNIT);
    const int iy = top + row, ix = left + column * UNIT;
    UNIT_TYPE unit = OUTSIDE;
    if (((uint)iy < (uint)a.ih) & ((uint)ix < (uint)a.iw))
      unit = *(__global const UNIT_TYPE*)(image + iy * a.in_h + ix);
    units[i] = unit;
    UNROLL for (int c = 1; c < COPIES; ++c) {
      if (column >= c * SHIFT) units[c * (ROWS * PITCH) + i - c * SHIFT] = unit;
    }
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE);

  const int y = first_line + warp, group = 0;
  for (int from = 0; from < WIDE; from += 16 * TILE_P) {
    if (first_x + from >= a.ow) break;
    // Finds the pixels of this work-item: rows 0, 8, 16 ... of the tile.
    int at[2 * TILE_P];
    UNROLL for (int i = 0; i < 2 * TILE_P; ++i) {
      const int element = (from + lane / 4 + i * 8) * PIXEL;
      at[i] = element % PER_WORD / SHIFT * COPY_WORDS + warp * (LINE * PITCH_WORDS) +
              element / PER_WORD + LEAD / PER_WORD;
    }
    const int first_pixel = first_x + from + lane / 4;
    for (int block = 0; block < a.blocks; ++block) {
      const int first_channel = block * (4 * VECTOR * VECTORS) + quarter * VECTOR;
      SUM sums[TILE_P][TILES][4];
      UNROLL for (int j = 0; j < TILES; ++j) {
#if BYTES
// Tile j contributes two channels of one vector.
#define FIRST_OF_TILE(j) (first_channel + j / (VECTOR / 2) * (4 * VECTOR) + j % (VECTOR / 2) * 2)
        __global const int* const start = AT(start_sums) + FIRST_OF_TILE(j);
        const int s0 = start[0], s1 = start[1];
#else
        const float s0 = 0, s1 = 0;
#endif
        UNROLL for (int i = 0; i < TILE_P; ++i) {
          sums[i][j][0] = sums[i][j][2] = s0;
          sums[i][j][1] = sums[i][j][3] = s1;
        }
      }
#if SHIFTED
      int totals[TILE_P][4];
      UNROLL for (int i = 0; i < TILE_P; ++i) {
        UNROLL for (int k = 0; k < 4; ++k) { totals[i][k] = 0; }
      }
#endif
      __global const uint2* const weight = AT(weights) + block * (STEPS * TILES * 32) + lane;
      UNROLL_STEPS for (int step = 0; step < STEPS; ++step) {
        const int k = step * 8 + quarter, even = FN(place)(k), odd = FN(place)(k + 4);
        uint2 factors[TILES];
        UNROLL for (int j = 0; j < TILES; ++j) { factors[j] = weight[(step * TILES + j) * 32]; }
        UNROLL for (int i = 0; i < TILE_P; ++i) {
          const uint a0 = words[at[2 * i] + even], a1 = words[at[2 * i + 1] + even];
          const uint a2 = words[at[2 * i] + odd], a3 = words[at[2 * i + 1] + odd];
          UNROLL for (int j = 0; j < TILES; ++j) {
            FN(mma)(sums[i][j], a0, a1, a2, a3, factors[j].s0, factors[j].s1 SCRATCH);
          }
#if SHIFTED
          FN(mma)
          (totals[i], a0, a1, a2, a3, FN(ones_of)(k), FN(ones_of)(k + 4) SCRATCH);
#endif
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
#define IN_LINE 1
#define ROWS_OF_ITEM (2 * TILE_P)
#define SUM_OF(i, k, j) sums[(i) / 2][(k) * (VECTOR / 2) + (j) / 2][(i) % 2 * 2 + (j) % 2]
#include "kernels/common/mma_store.cl"
    }
  }
}
