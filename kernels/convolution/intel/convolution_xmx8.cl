// Direct convolution on channels-last activations by the matrix instructions (dpas) of sub-groups of
// eight lanes, which DG2, Meteor Lake and Arrow Lake have. The rows of an instruction are 32 bytes of
// the weights of eight output channels, its columns those of eight pixels. A lane reads its own
// pixel, so that a message brings a part of eight of them, and gets eight sums of its pixel. So a
// work-item computes what one of the tile kernel does: TILE_P neighbouring pixels x VECTORS vectors of
// VECTOR output channels, in one row of the output. Pixels outside the input are masked after they
// are read. Weights are packed as [group][block][run][block of the input][output channel of the
// block][32 bytes], each run padded to whole blocks of 32 bytes.
// Defines besides T, VECTOR (8), VECTORS and TILE_P:
//   IN_T          type of the input
//   BYTES         the input is bytes, whose sums are integers and begin with start_sums
//   STAND_IN      computes matrices by shuffles, for tests on any device with sub-groups
//   ROWS, SLICES  work-group: tiles, a multiple of eight, x slices of the runs, whose sums are added
//                 in local memory
//   READS         blocks of a pixel that are read at once: 1, 2 or 4; runs are whole steps unless it
//                 is 1
//   MERGED        a run is a row of the kernel
//   REST          words at the end of a run that do not fill a block, rounded up to one
//   REST_WORDS    these words
//   ALIGNED_OUT   defined if vectors of the output are aligned to their size
//   POINTWISE     1x1; input and output are each one long row of pixels
//   FLAT_TAIL     the tail's operands are long rows of pixels as well
//   DEPTH         there is a third spatial dimension

#if BYTES
#define SUM int
#define RESULT(v) convert_float8(v)
#else
#define SUM float
#define RESULT(v) v
#endif
#define UNIT (4 / (int)sizeof(IN_T))  // input channels in a word
#define MATRIX_LANES 8
#define MATRIX_ROWS 8
#include "kernels/common/sub_group_matrix.cl"
#include "kernels/common/tile.cl"
#if !POINTWISE
// Uses the places of a tile's pixels in their row, which take fewer registers than separate
// positions.
#undef PIXEL_OFFSET
#define PIXEL_OFFSET(p) offset + p* a.out_w
#endif

// Does a step: multiplies a block of each pixel, LOAD(p), by the weights of each vector.
#define MULTIPLY_PIXEL(k, p) acc##p##_##k = MULTIPLY(rows, CAT(as_, COLUMNS_T)(x##p), acc##p##_##k);
#define MULTIPLY_VECTOR(k)                                                               \
  {                                                                                      \
    __global const int* const row = AT(weights) + w + k * 8 * VECTOR;                    \
    const int8 rows = as_int8(intel_sub_group_block_read8((__global const uint*)(row))); \
    REPEAT_WITH(TILE_P, k, MULTIPLY_PIXEL)                                               \
  }
#define STEP(LOAD, n)                \
  {                                  \
    REPEAT(TILE_P, LOAD)             \
    REPEAT(VECTORS, MULTIPLY_VECTOR) \
    w += WEIGHTS(8);                 \
  }
#define WEIGHTS(n) ((n)*BLOCK)

// Loads the blocks of every pixel at r0, r1, ...
#if POINTWISE
#define MASKED(p, v) v
#else
#define MASKED(p, v) ((v)&mask##p | outside & ~mask##p)
#endif
#define WORDS_AT(p, words) ((__global const uint*)(r##p + UNIT * (i + (words))))
#define READ_BLOCK(p, m) v##p[m] = MASKED(p, vload8(0, WORDS_AT(p, 8 * m)));
#define X0(p) const uint8 x##p = v##p[0];
#define X1(p) const uint8 x##p = v##p[1];
#define X2(p) const uint8 x##p = v##p[2];
#define X3(p) const uint8 x##p = v##p[3];
#define STRIDE (8 * READS)
#if READS == 1
#define LOAD_STEP(p) const uint8 x##p = MASKED(p, vload8(0, WORDS_AT(p, 0)));
#define STEP_WHOLE(LOAD) STEP(LOAD, 8)
#else
#define LOAD_STEP(p) \
  uint8 v##p[READS]; \
  REPEAT_WITH(READS, p, READ_BLOCK)
#if READS == 2
#define STEPS STEP(X0, 8) STEP(X1, 8)
#else
#define STEPS STEP(X0, 8) STEP(X1, 8) STEP(X2, 8) STEP(X3, 8)
#endif
#define STEP_WHOLE(LOAD) \
  { REPEAT(TILE_P, LOAD) STEPS }
#endif
#define REST_WORD(p, j) ((j) < REST_WORDS ? (p)[j] : 0)
uint8 FN(read_rest)(__global const uint* p) {
  return (uint8)(REST_WORD(p, 0), REST_WORD(p, 1), REST_WORD(p, 2), REST_WORD(p, 3),
                 REST_WORD(p, 4), REST_WORD(p, 5), REST_WORD(p, 6), 0);
}
#define LOAD_REST(p) const uint8 x##p = MASKED(p, FN(read_rest)(WORDS_AT(p, 0)));
#include "kernels/common/sub_group_runs.cl"

#if MERGED
#define VALID_RUN(p) ((uint)(iy##p + ky * a.dh) < (uint)a.ih VALID_Z(p))
// Reads a word of a run. The input has the words from `from` to `to` - 1.
uint FN(read_word)(__global const IN_T* start, int at, int word, int from, int to, uint outside) {
  const bool valid = (word >= from) & (word < to);
  const uint value = *(__global const uint*)(start + (valid ? at + UNIT * word : 0));
  return valid ? value : outside;
}
#define PART_WORD(p, j) FN(read_word)(start, at##p + tap, i + j, from##p, to##p, outside)
#define LOAD_PART(p)                                                                             \
  const int from##p = max(-ix##p, 0) * a.in_channels / UNIT;                                     \
  const int to##p = valid##p ? min(a.iw - ix##p, a.kw) * a.in_channels / UNIT : 0;               \
  const uint8 x##p = (uint8)(PART_WORD(p, 0), PART_WORD(p, 1), PART_WORD(p, 2), PART_WORD(p, 3), \
                             PART_WORD(p, 4), PART_WORD(p, 5), PART_WORD(p, 6), PART_WORD(p, 7));
#else
#define VALID_RUN(p) VALID(p)
#endif

#if BYTES
#define START_SUMS IN(int, start_sums),
#define START(k) vload8(k, AT(start_sums) + BLOCK_NUMBER * BLOCK)
#else
#define START_SUMS
#define START(k) 0
#endif
#if BYTES && !POINTWISE
#define ZEROS IN(uint, zeros),
#else
#define ZEROS
#endif
#define BEGIN_(p, k) SUMS_T acc##p##_##k = START(k);
#define BEGIN(p) REPEAT_WITH(VECTORS, p, BEGIN_)

WORK_GROUP(MATRIX_LANES, ROWS / MATRIX_LANES, SLICES)
__attribute__((intel_reqd_sub_group_size(MATRIX_LANES)))
KERNEL(IN(IN_T, in), IN(int, weights), ZEROS START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  // Tiles past the end repeat the last pixel or tile and store nothing, because all lanes of a
  // sub-group must take part.
  const int run_of_tiles = get_global_id(1) * MATRIX_LANES + get_local_id(0);
  const int first = run_of_tiles * a.tiles_per_item, last = first + a.tiles_per_item;
#if SLICES > 1
  const int slice = intel_sub_group_shuffle((int)get_local_id(2), 0);  // the same in all lanes
  SHARED(float, sums, SLICES* ROWS* TILE_P* VECTORS* VECTOR);
#endif
  const int group = BLOCK_NUMBER / a.blocks;
  const int lane_c = (BLOCK_NUMBER - group * a.blocks) * BLOCK;
  __global const IN_T* const start = AT(in) + group * a.in_channels;
#if !POINTWISE
#if BYTES
  const uint outside = *AT(zeros);
#else
  const uint outside = 0;
#endif
#endif
  for (int turn = 0; turn < a.tiles_per_item; ++turn) {
    const int tile = first + turn;
    REPEAT(TILE_P, BEGIN)
    int w = BLOCK_NUMBER * WEIGHTS(a.depth);
#if POINTWISE
    const int left = a.pixels - tile * TILE_P;
#define POINT(p) \
  __global const IN_T* const r##p = start + min(tile * TILE_P + p, a.pixels - 1) * a.in_w;
    REPEAT(TILE_P, POINT)
    RUN(a.in_channels / UNIT, LOAD_STEP, LOAD_REST)
#else
    // Finds the row of the output in which the tile lies.
    const int tiles_of_row = (a.ow + TILE_P - 1) / TILE_P, place = min(tile, a.tiles - 1);
    const int line = place / tiles_of_row, x = (place - line * tiles_of_row) * TILE_P;
    const int left = tile < a.tiles ? a.ow - x : 0;
    const int plane = line / a.oh, y = line - plane * a.oh;
    const int iy = y * a.sh - a.ph, ix = x * a.sw - a.pw;
#if DEPTH
    const int n = plane / a.od, z = plane - n * a.od, iz = z * a.sd - a.pd;
    const int at = n * a.in_n + iz * a.in_d + iy * a.in_h + ix * a.in_w;
    const int offset = n * a.out_n + z * a.out_d + y * a.out_h + x * a.out_w;
#define IN_ROW_Z(p) , iz##p = iz
#else
    const int n = plane;
    const int at = n * a.in_n + iy * a.in_h + ix * a.in_w;
    const int offset = n * a.out_n + y * a.out_h + x * a.out_w;
#define IN_ROW_Z(p)
#endif
#define IN_ROW(p)                                                                            \
  const int n##p = n, y##p = y, x##p = x + p, iy##p = iy, ix##p = ix + p * a.sw IN_ROW_Z(p); \
  const int at##p = at + p * a.sw * a.in_w;
    REPEAT(TILE_P, IN_ROW)
#if MERGED
    const int runs = 1, run = a.kw * a.in_channels;
    // True if the input has all words of all lanes' runs.
    const int past = a.iw - (TILE_P - 1) * a.sw - a.kw + 1;
    const bool whole = sub_group_all((ix >= 0) & (ix < past));
#else
    const int runs = a.kw, run = a.in_channels;
#endif
    LOOP_Z
    for (int ky = 0; ky < a.kh; ++ky)
      for (int kx = 0; kx < runs; ++kx) {
        const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
        int any = BYTES;  // zero points outside of the input count as well
#define BORDER(p)                                                         \
  const bool valid##p = VALID_RUN(p);                                     \
  const uint mask##p = valid##p ? 0xffffffff : 0;                         \
  __global const IN_T* const r##p = start + (valid##p ? at##p + tap : 0); \
  any |= valid##p;
        REPEAT(TILE_P, BORDER)
        if (!sub_group_any(any)) w += PADDED(run / UNIT);
#if MERGED
        else if (!whole)
          RUN(run / UNIT, LOAD_PART, LOAD_PART)
#endif
        else
          RUN(run / UNIT, LOAD_STEP, LOAD_REST)
      }
#endif
#if SLICES > 1
#include "kernels/common/tile_slices.cl"
#else
#include "kernels/common/tile_store.cl"
#endif
  }
}
