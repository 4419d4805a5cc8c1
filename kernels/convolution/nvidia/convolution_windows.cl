// Convolution of pixels with up to four channels, such as those of an image, by the warpgroup matrix
// instructions of NVIDIA's compute capability 9.0 (wgmma). A work-group copies the rows that its lines of
// output pixels read to local memory, each pixel as four elements. One row of the kernel then reads a run of
// units of 16 bytes, and the units of adjacent output pixels are adjacent: this is the order in which the
// instructions read matrices, so that no matrix of windows is made. Where the next output pixel
// reads less than 16 bytes further on, units overlap, and blocks of PIXEL pixels are stored in several.
// A warpgroup multiplies 64 windows of a line by COLUMNS output channels; a step takes two units of each.
// With POOL the kernel stores maxima of POOL x POOL sums, two apart: the sums of even and odd columns are
// two planes, a work-item has the same rows of both, and it keeps what the next line of maxima also takes.
// The weights are packed as [block of channels][step][unit][column], columns in the order of channels of
// convolution_mma.cl. Defines besides T (of the output), VECTOR, COLUMNS, WARPGROUPS, LINES (of each
// warpgroup) and those of common/mma_store.cl:
//   BYTES         the data are bytes with integer sums; else halves
//   QUANTIZES     the data are floats that become bytes: levels from LOWEST_LEVEL to HIGHEST_LEVEL
//   START_SUM     the number to add to all sums of bytes; else start_sums are added
//   CHANNELS      of a pixel
//   PIXEL, LINE   pixels between two windows of a line, and rows between two lines
//   POOL          0, or the size of the windows of which there are maxima: 2 or 3
//   PLANES        1, with POOL 2
//   ROWS          copied rows
//   UNITS         units of each plane of a row
//   STEPS         steps of the sum
//   WGMMA_PTX     PTX (see engine/ocl/compiler/marked_ptx.h); else plain C computes the same values, with the
//                 table `places` of the units of a step
//   LOCAL_BYTES, LIMIT_REGISTERS  see convolution_wgmma.cl
//   MULTIPLY(sums, a, b)  with WGMMA_PTX: sums up the products of all steps, of each plane

typedef struct {
#include "kernels/convolution/nvidia/convolution_windows_args.cl"
} FN(Args);

#define SLICES 1
#define CHUNKS 2  // units of a step
#include "kernels/common/warpgroup.cl"

#define SUMS (COLUMNS / 2)  // sums of a plane that a work-item has
#define ROW_UNITS (PLANES * UNITS)
#define WEIGHT_UNITS (STEPS * CHUNKS * COLUMNS)
#define BLOCK_WORDS (PIXEL * (BYTES ? 1 : 2))
#define PER_UNIT (4 / BLOCK_WORDS)  // blocks of a unit
#define BLOCKS (ROW_UNITS + PER_UNIT - 1)
#if BLOCK_WORDS == 1
#define BLOCK uint
#define BLOCK_OF(words) words[0]
#elif BLOCK_WORDS == 2
#define BLOCK uint2
#define BLOCK_OF(words) (uint2)(words[0], words[1])
#else
#define BLOCK uint4
#define BLOCK_OF(words) (uint4)(words[0], words[1], words[2], words[3])
#endif
#if QUANTIZES
#define ELEMENT float
// Rounds as the operation Quantize does, which leaves the level in the lowest bits.
#define CLAMPED(x, c) \
  fmin(fmax((x)*a.scale[c] + a.shift[c], (float)LOWEST_LEVEL), (float)HIGHEST_LEVEL)
#define BITS_OF(x, c) (as_uint(CLAMPED(x, c) + 12582912.0f) - LOWEST_LEVEL)
#elif BYTES
#define ELEMENT uchar
#define BITS_OF(x, c) x
#else
#define ELEMENT ushort
#define BITS_OF(x, c) x
#endif
#define ROWS_AT_ONCE (ITEMS >= BLOCKS ? ITEMS / BLOCKS : 1)  // copied by all work-items

// The windows of a warpgroup are eight groups of eight. With POOL 3 the first of a group is the last of
// the group before, whose odd column belongs to the next window of maxima as well.
#if POOL == 3
#define GROUP 7
#else
#define GROUP 8
#endif

#if BYTES
#define LOWEST (-(1 << 29))  // less than any sum
#else
#define LOWEST (-INFINITY)
#endif

#if WGMMA_PTX
#define UNROLL_ROWS _Pragma("unroll 4")
// Keeps the compiler from computing a block's results for all and choosing afterwards.
#define ASIDE asm volatile("")
// Describes matrices without swizzle: 8 rows of 16 bytes follow each other, and groups of rows are
// `apart` units apart. Units of a row are `next` units apart.
inline ulong FN(matrix)(__local const uint4* first, int next, int apart) {
  return (ulong)(((uint)(size_t)first >> 4) & 0x3fff) | (ulong)next << 16 | (ulong)apart << 32;
}
// Returns the value that the work-item four lanes below has: of the same columns in the row before.
inline SUM FN(of_row_before)(SUM sum) {
#if BYTES
  asm volatile("shfl.sync.up.b32 %0, %0, 4, 0, -1;" : "+r"(sum));
#else
  asm volatile("shfl.sync.up.b32 %0, %0, 4, 0, -1;" : "+f"(sum));
#endif
  return sum;
}
#define OF_ROW_BEFORE(i, units) FN(of_row_before)(sums[SUMS + i])
#define SUM_UP(units) \
  MULTIPLY(sums, windows_matrix + (ulong)(units), FN(matrix)(columns, COLUMNS, 8));
#else
#define UNROLL_ROWS
#define ASIDE
// Returns the sum of products of a window of a plane with a column of weights.
inline SUM FN(sum_of)(__local const uint4* units, __local const uint4* columns, int plane, int row,
                      int column) {
  SUM sum = 0;
  for (int k = 0; k < STEPS * CHUNKS; ++k)
    for (int i = 0; i < ELEMENTS; ++i)
      sum += FN(product)(units + FN(places)[plane * (STEPS * CHUNKS) + k] + row,
                         columns + k * COLUMNS + column, i);
  return sum;
}
#define COLUMN(i) ((i) / 4 * 8 + lane % 4 * 2 + (i) % 2)
#define OF_ROW_BEFORE(i, units)                                                   \
  ((uint)COLUMN_OF_SUMS(row_of[i % 4 / 2] - 1, 1) >= (uint)a.summed_w || lane < 4 \
       ? LOWEST                                                                   \
       : FN(sum_of)(windows + (units), columns, 1, row_of[i % 4 / 2] - 1, COLUMN(i)))
#define SUM_UP(units)                     \
  for (int i = 0; i < PLANES * SUMS; ++i) \
    sums[i] = FN(sum_of)(windows + (units), columns, i / SUMS, row_of[i % 4 / 2], COLUMN(i % SUMS));
#endif

inline SUM FN(larger)(SUM x, SUM y) {
#if BYTES
  return max(x, y);
#elif WGMMA_PTX
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
  return larger;
#else
  return isnan(x) || x > y ? x : y;
#endif
}

WORK_GROUP(ITEMS, 1, 1)
KERNEL(IN(ELEMENT, in), IN(uint4, weights), START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int item = get_local_id(0), lane = item % 32, warp = item / 32 % 4;
  const int warpgroup = WARPGROUPS > 1 ? item / 128 : 0;
  const int tile = (int)get_group_id(0) / a.blocks;
  const int block = (int)get_group_id(0) - tile * a.blocks;
  const int tile_line = tile / a.tiles_w, n = tile_line / a.tiles_h;
  const int first_line = (tile_line - n * a.tiles_h) * (LINES * WARPGROUPS);
  const int first_x = (tile - tile_line * a.tiles_w) * (8 * GROUP);
  const int first_channel = block * COLUMNS + lane % 4 * VECTOR, group = 0;
#if WGMMA_PTX
  DECLARE_TILES
#else
  __local uint4 tiles[WEIGHT_UNITS + ROWS * ROW_UNITS] __attribute__((aligned(1024)));
#endif
  __local uint4* const columns = tiles;
  __local uint4* const windows = tiles + WEIGHT_UNITS;

  // Finds the first line and column of sums.
#if POOL
  const int sums_y = first_line * 2 - a.pool_h;
  const int sums_x = first_x * 2 - a.pool_w - (POOL == 3);
#else
  const int sums_y = first_line, sums_x = first_x;
#endif
  {
    __global const uint4* const weight = AT(weights) + block * WEIGHT_UNITS;
    for (int i = item; i < WEIGHT_UNITS; i += ITEMS) columns[i] = weight[i];
  }
  {
    __global const ELEMENT* const image = AT(in) + n * a.in_n;
    __local BLOCK* const blocks = (__local BLOCK*)windows;
    const int top = sums_y * a.sh - a.ph, left = sums_x * a.sw - a.pw;
    const int first_row = ROWS_AT_ONCE > 1 ? item / BLOCKS : 0;
    for (int in_row = item - first_row * BLOCKS; in_row < BLOCKS && first_row < ROWS_AT_ONCE;
         in_row += ITEMS) {
      // Pixels outside of the image are read from its border, and then replaced: without branches, so
      // that many reads are under way at once.
      int from[PIXEL];
      uint inside[PIXEL];
      UNROLL for (int p = 0; p < PIXEL; ++p) {
        const int ix = left + in_row * PIXEL + p;
        inside[p] = (uint)ix < (uint)a.iw ? ~0u : 0;
        from[p] = clamp(ix, 0, a.iw - 1) * a.in_w;
      }
      // Finds the places of this block in its units. A unit that does not exist is replaced by another.
      int places[PER_UNIT];
      UNROLL for (int k = 0; k < PER_UNIT; ++k) {
        const int used = in_row - k < 0 ? 0 : in_row - k < ROW_UNITS ? k : PER_UNIT - 1;
        const int unit = in_row - used;
        places[k] = (unit % PLANES * UNITS + unit / PLANES) * PER_UNIT + used;
      }
      UNROLL_ROWS for (int row = first_row; row < ROWS; row += ROWS_AT_ONCE) {
        const int iy = top + row;
        __global const ELEMENT* const line = image + clamp(iy, 0, a.ih - 1) * a.in_h;
        const uint in_line = (uint)iy < (uint)a.ih ? ~0u : 0;
        uint words[BLOCK_WORDS];
        UNROLL for (int p = 0; p < PIXEL; ++p) {
          // Channels that are missing have weights of 0.
          uint e[4];
          UNROLL for (int c = 0; c < 4; ++c) {
            e[c] = c < CHANNELS ? BITS_OF(line[from[p] + c], c) : e[CHANNELS - 1];
          }
          const uint known = in_line & inside[p];
#if BYTES
          words[p] = bitselect((uint)a.outside, as_uint((uchar4)(e[0], e[1], e[2], e[3])), known);
#else
          words[2 * p] = as_uint((ushort2)(e[0], e[1])) & known;
          words[2 * p + 1] = as_uint((ushort2)(e[2], e[3])) & known;
#endif
        }
        UNROLL for (int k = 0; k < PER_UNIT; ++k) {
          blocks[row * (ROW_UNITS * PER_UNIT) + places[k]] = BLOCK_OF(words);
        }
      }
    }
  }
  PUBLISH;
  barrier(CLK_LOCAL_MEM_FENCE);

#if WGMMA_PTX
  const ulong windows_matrix = FN(matrix)(windows, 0, GROUP);
#endif
  // This work-item has the sums of two rows of windows.
  const int row_of[2] = {warp * 2 * GROUP + lane / 4, (warp * 2 + 1) * GROUP + lane / 4};
#define COLUMN_OF_SUMS(row, plane) (sums_x + (row)*PLANES + (plane))
#if POOL
  // Sums outside of the image take no part in maxima.
  bool outside[PLANES * 2], any_outside = false;
  UNROLL for (int i = 0; i < PLANES * 2; ++i) {
    outside[i] = (uint)COLUMN_OF_SUMS(row_of[i % 2], i / 2) >= (uint)a.summed_w;
    any_outside |= outside[i];
  }
  SUM next[SUMS];
#endif

  for (int l = 0; l < LINES; ++l) {
    const int line = warpgroup * LINES + l, y = first_line + line;
    if (y >= a.oh) break;
#if POOL
    SUM result[SUMS];
    UNROLL for (int k = 0; k < POOL; ++k) {
      if (POOL == 3 && k == 0 && l > 0) {
        UNROLL for (int i = 0; i < SUMS; ++i) { result[i] = next[i]; }
        continue;
      }
      const int sums_line = line * 2 + k;
      if ((uint)(sums_y + sums_line) < (uint)a.summed_h) {
        SUM sums[PLANES * SUMS];
        SUM_UP(sums_line * (LINE * ROW_UNITS))
        if (any_outside) {
          ASIDE;
          UNROLL for (int i = 0; i < PLANES * SUMS; ++i) {
            if (outside[i / SUMS * 2 + i % 4 / 2]) sums[i] = LOWEST;
          }
        }
        UNROLL for (int i = 0; i < SUMS; ++i) {
          next[i] = FN(larger)(sums[i], sums[SUMS + i]);
#if POOL == 3
          next[i] = FN(larger)(next[i], OF_ROW_BEFORE(i, sums_line * (LINE * ROW_UNITS)));
#endif
        }
      } else {
        UNROLL for (int i = 0; i < SUMS; ++i) { next[i] = LOWEST; }
      }
      UNROLL for (int i = 0; i < SUMS; ++i) {
        result[i] = k == 0 ? next[i] : FN(larger)(result[i], next[i]);
      }
    }
    const int first_pixel = POOL == 3 && lane < 4 ? a.ow : first_x + row_of[0] - (POOL == 3);
#define RESULT result
#else
    SUM sums[SUMS];
    SUM_UP(line * (LINE * ROW_UNITS))
    const int first_pixel = first_x + row_of[0];
#define RESULT sums
#endif
#if BYTES
    UNROLL for (int i = 0; i < SUMS; ++i) {
#ifdef START_SUM
      RESULT[i] += START_SUM;
#else
      RESULT[i] += AT(start_sums)[first_channel + i / (2 * VECTOR) * (4 * VECTOR) +
                                  i / 4 % (VECTOR / 2) * 2 + i % 2];
#endif
    }
#endif
#define IN_LINE 1
#define PIXELS_APART GROUP
#define ROWS_OF_ITEM 2
#define SUM_OF(i, k, j) RESULT[((k) * (VECTOR / 2) + (j) / 2) * 4 + (i)*2 + (j) % 2]
#include "kernels/common/mma_store.cl"
  }
}
