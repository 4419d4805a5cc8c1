// Computes a depthwise convolution on channels-last activations. A work-item computes TILE_P
// neighbouring pixels of a row x VECTOR channels. Weights are packed as [kh][kw][channel]. The last
// vector of channels overlaps the one before it if the channels are no multiple of VECTOR. Defines:
//   T, IN_T         types of the output and of the input
//   VECTOR, TILE_P  channels and pixels of a work-item
//   LANES, ROWS     work-group: lanes along channels x rows of tiles
//   KH, KW, SW, DW  numbers if the loops are unrolled, else members of `a`
//   BYTES           the input is bytes, the weights are floats: f32 sums are exact. The zero points
//                   of all channels are read for pixels outside the input; without BYTES, VECTOR
//                   zeros, which follow the weights
//   LOAD, SAVE      read and write vectors of input, weights and output, aligned or not
//   SPLIT           tiles that do not touch the edges have their own code
//   COLUMNS         near an edge, the columns that a tile reads in a row are loaded once (0: for each
//                   pixel again); compilers do not see that those of neighbouring pixels are the same
//   HAS_ZERO        with BYTES: not all zero points are 0

typedef struct {
#include "kernels/convolution/convolution_depthwise_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#if BYTES
#define WEIGHT_T float
#define ZEROS IN(uchar, zero_points),
#else
#define WEIGHT_T IN_T
#define ZEROS
#endif
#if HAS_ZERO
#define VALUE(p) (LOAD(IN_T, VECTOR, p) - zero)
#else
#define VALUE(p) LOAD(IN_T, VECTOR, p)
#endif

#define CLEAR(p) FV acc##p = 0;
#define INSIDE(ix) (row + (ix)*a.in_w)
#define ANYWHERE(ix) ((uint)(ix) < (uint)a.iw ? row + (ix)*a.in_w : outside)
#define TAP(p, PLACE) acc##p = fma(VALUE(PLACE(ix0 + p * SW + kx * DW)), wv, acc##p);
#define TAP_INSIDE(p) TAP(p, INSIDE)
#define TAP_ANYWHERE(p) TAP(p, ANYWHERE)
#define ROWS_OF_TAPS(TAPS)                                                                \
  for (int ky = ky_first; ky < ky_last; ++ky) {                                           \
    __global const IN_T* const row = AT(in) + n * a.in_n + (iy + ky * a.dh) * a.in_h + c; \
    __global const WEIGHT_T* const w = AT(weights) + ky * KW * a.channels + c;            \
    _Pragma("unroll") for (int kx = 0; kx < KW; ++kx) {                                   \
      const FV wv = LOAD(WEIGHT_T, VECTOR, w + kx * a.channels);                          \
      REPEAT(TILE_P, TAPS)                                                                \
    }                                                                                     \
  }

#if COLUMNS
#define TAP_COLUMN(p) acc##p = fma(columns[p * SW + kx], wv, acc##p);
#define ROWS_NEAR_EDGE                                                                         \
  for (int ky = ky_first; ky < ky_last; ++ky) {                                                \
    __global const IN_T* const row = AT(in) + n * a.in_n + (iy + ky * a.dh) * a.in_h + c;      \
    __global const WEIGHT_T* const w = AT(weights) + ky * KW * a.channels + c;                 \
    FV columns[COLUMNS];                                                                       \
    _Pragma("unroll") for (int i = 0; i < COLUMNS; ++i) columns[i] = VALUE(ANYWHERE(ix0 + i)); \
    _Pragma("unroll") for (int kx = 0; kx < KW; ++kx) {                                        \
      const FV wv = LOAD(WEIGHT_T, VECTOR, w + kx * a.channels);                               \
      REPEAT(TILE_P, TAP_COLUMN)                                                               \
    }                                                                                          \
  }
#else
#define ROWS_NEAR_EDGE ROWS_OF_TAPS(TAP_ANYWHERE)
#endif

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(IN_T, in), IN(WEIGHT_T, weights), ZEROS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  int x = first % a.row_tiles * TILE_P, y = first / a.row_tiles, n = y / a.oh;
  y -= n * a.oh;
  for (int tile = first; tile < last; ++tile) {
    const int iy = y * a.sh - a.ph, ix0 = x * SW - a.pw;
    // Finds the rows of the kernel that lie inside the input.
    const int ky_first = iy < 0 ? min((a.dh - 1 - iy) / a.dh, KH) : 0;
    const int ky_last = min(KH, iy < a.ih ? (a.ih - iy + a.dh - 1) / a.dh : 0);
    const int left = a.ow - x;
    for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
      const int c = min(vector * VECTOR, a.channels - VECTOR);
      REPEAT(TILE_P, CLEAR)
#if BYTES
      __global const uchar* const outside = AT(zero_points) + c;
#if HAS_ZERO
      const FV zero = LOAD(uchar, VECTOR, outside);
#endif
#else
      __global const WEIGHT_T* const outside = AT(weights) + a.zeros;
#endif
#if SPLIT
      // Computes addresses one from the other, away from the edges.
      if (ix0 >= 0 && ix0 + (TILE_P - 1) * SW + (KW - 1) * DW < a.iw) {
        ROWS_OF_TAPS(TAP_INSIDE)
      } else {
        ROWS_NEAR_EDGE
      }
#else
      ROWS_NEAR_EDGE
#endif
      __global T* const to = AT(out) + n * a.out_n + y * a.out_h + x * a.out_w + c;
#define STORE(p) \
  if (p < left) SAVE(STORED, VECTOR, TAIL(acc##p, n, y, x + p, c, VECTOR), to + p * a.out_w);
      REPEAT(TILE_P, STORE)
    }
    x += TILE_P;
    if (x >= a.ow) {
      x = 0;
      if (++y == a.oh) {
        y = 0;
        ++n;
      }
    }
  }
}
