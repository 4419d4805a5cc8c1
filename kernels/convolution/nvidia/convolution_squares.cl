// Convolution by warpgroup matrix instructions like convolution_wgmma.cl, of pixels whose channels are one
// step, with steps of one or two pixels. A warpgroup multiplies a square of 8 x 8 pixels of the output, whose
// lines are the groups of eight rows of the instruction's matrix. All taps share the pixels in local
// memory: a tap's matrix begins so many places further on, and swizzles are those of addresses. Each
// line there has first its pixels 0, COLUMN_STEP, ..., then 1 and so on, so that those of a tap are adjacent. A
// work-group takes one tile after the other, keeps the weights of all taps, and copies the next tile's
// pixels while it multiplies. Weights, their order and defines are those of convolution_wgmma.cl
// with WHOLE_STEPS and without POINTWISE, STAGES and SLICES, and:
//   SQUARES_W, SQUARES_H  squares of a tile; their product is WARPGROUPS
//   KERNEL_H, KERNEL_W    taps
//   TAP_H, TAP_W          dilations
//   LINE_STEP, COLUMN_STEP  strides
//   TILE_LINES, TILE_COLUMNS  lines and pixels of a line that a tile reads

typedef struct {
#include "kernels/convolution/nvidia/convolution_squares_args.cl"
} FN(Args);

#define SLICES 1
#define ROW_PLACE(r) ((r) / 8 * (LINE_STEP * LINE) + (r) % 8)
#include "kernels/common/warpgroup.cl"

#define RUN ((TILE_COLUMNS + COLUMN_STEP - 1) / COLUMN_STEP)  // adjacent places
#define LINE (COLUMN_STEP * RUN)                              // places of a line
#define BUFFER ((TILE_LINES * LINE + 7) / 8 * 8 * CHUNKS)
#define TAPS (KERNEL_H * KERNEL_W)
#define WEIGHTS (TAPS * COLUMNS * CHUNKS)
#define COPIES (TILE_LINES * TILE_COLUMNS * CHUNKS)

WORK_GROUP(ITEMS, 1, 1)
KERNEL(IN(uint4, in), IN(uint4, weights), START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int item = get_local_id(0), lane = item % 32, warp = item / 32 % 4, slice = 0, group = 0;
  const int warpgroup = item / 128, block = 0;
  int tile = get_group_id(0);
#if WGMMA_PTX
  DECLARE_TILES
#else
  __local uint4 tiles[WEIGHTS + 2 * BUFFER] __attribute__((aligned(1024)));
#endif
  __local uint4* const columns = tiles + 2 * BUFFER;
  UNROLL for (int pass = 0; pass < (WEIGHTS + ITEMS - 1) / ITEMS; ++pass) {
    const int i = item + pass * ITEMS;
    if (WEIGHTS % ITEMS == 0 || i < WEIGHTS) FN(copy_pixels)(columns + i, AT(weights) + i, true);
  }

#define PLACE_TILE                                                      \
  const int tile_line = tile / a.tiles_w;                               \
  const int first_x = (tile - tile_line * a.tiles_w) * (8 * SQUARES_W); \
  const int n = tile_line / a.tiles_h;                                  \
  const int first_y = (tile_line - n * a.tiles_h) * (8 * SQUARES_H);
#define READ_TILE(to)                                                                            \
  {                                                                                              \
    PLACE_TILE                                                                                   \
    const int top = first_y * LINE_STEP - a.ph, left = first_x * COLUMN_STEP - a.pw;             \
    UNROLL for (int pass = 0; pass < (COPIES + ITEMS - 1) / ITEMS; ++pass) {                     \
      const int i = item + pass * ITEMS;                                                         \
      const int chunk = i % CHUNKS, line = i / CHUNKS / TILE_COLUMNS;                            \
      const int in_line = i / CHUNKS % TILE_COLUMNS, y = top + line, x = left + in_line;         \
      const int place = line * LINE + in_line % COLUMN_STEP * RUN + in_line / COLUMN_STEP;       \
      const bool inside = ((uint)y < (uint)a.ih) & ((uint)x < (uint)a.iw);                       \
      if (COPIES % ITEMS == 0 || i < COPIES)                                                     \
        COPY_PIXELS((to) + SWIZZLED(place, chunk), n * a.in_n + y * a.in_h + x * a.in_w + chunk, \
                    inside);                                                                     \
    }                                                                                            \
  }

  READ_TILE(tiles)
  COMMIT_COPIES;
  for (int buffer = 0; tile < a.tiles; buffer = BUFFER - buffer) {
    PLACE_TILE
    WAIT(0);
    PUBLISH;
    // All work-items have copied this tile, and have multiplied the one before.
    barrier(CLK_LOCAL_MEM_FENCE);
    __local const uint4* const pixels = tiles + buffer;
    tile += get_num_groups(0);
    if (tile < a.tiles) READ_TILE(tiles + BUFFER - buffer)
    COMMIT_COPIES;
    DECLARE_SUMS
    const int square = warpgroup / SQUARES_W * (8 * LINE_STEP * LINE) + warpgroup % SQUARES_W * 8;
    UNROLL for (int tap = 0; tap < TAPS; ++tap) {
      const int line = tap / KERNEL_W * TAP_H, column = tap % KERNEL_W * TAP_W;
      const int first = square + line * LINE + column % COLUMN_STEP * RUN + column / COLUMN_STEP;
#if WGMMA_PTX
      MULTIPLY(sums, FN(lines_apart)(pixels + first * CHUNKS, LINE_STEP * LINE),
               FN(descriptor)(columns + tap * (COLUMNS * CHUNKS)));
#else
      MULTIPLY_PLAINLY(pixels, first, columns + tap * (COLUMNS * CHUNKS))
#endif
    }
    FINISH(sums);
    // A work-item has a pixel each of two lines.
    const int first_line = first_y + warpgroup / SQUARES_W * 8 + warp * 2;
    const int first_pixel = first_x + warpgroup % SQUARES_W * 8 + lane / 4;
#define IN_LINE 1
#define LINE_OF_ROW(i) (first_line + (i))
#define PIXELS_APART 0
#define ROWS_OF_ITEM 2
#define SUM_OF(i, k, j) sums[((k) * (VECTOR / 2) + (j) / 2) * 4 + (i)*2 + (j) % 2]
#include "kernels/common/mma_store.cl"
  }
}
