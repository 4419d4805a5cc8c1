// Depthwise convolution on channels-last activations: a work-item computes TILE_P neighbouring
// pixels of a row x VECTOR channels. Weights are packed [kh][kw][channel]; VECTOR zeros behind them
// stand for every pixel outside the input. The last vector of channels overlaps the one before
// where needed. Defines: T, VECTOR, TILE_P, LANES, ROWS (work-group: lanes along channels x rows of
// tiles), KH, KW, SW, DW (numbers where the loops are to be unrolled, else members of `a`).

typedef struct {
  int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
  int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
  int channels, vectors;
  int row_tiles, tiles,
      tiles_per_item;  // tiles of a row, of all rows of all images, of a work-item
  int zeros;           // where the zeros start
} FN(Args);

#define FV FLOATV(VECTOR)

__attribute__((reqd_work_group_size(LANES, ROWS, 1)))
KERNEL(IN(T, in), IN(T, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  __global const T *const zeros = AT(weights) + a.zeros;
  int x = first % a.row_tiles * TILE_P, y = first / a.row_tiles, n = y / a.oh;
  y -= n * a.oh;
  for (int tile = first; tile < last; ++tile) {
    const int iy = y * a.sh - a.ph, ix0 = x * SW - a.pw;
    // Rows of the kernel that meet the input.
    const int ky_first = iy < 0 ? min((a.dh - 1 - iy) / a.dh, KH) : 0;
    const int ky_last = min(KH, iy < a.ih ? (a.ih - iy + a.dh - 1) / a.dh : 0);
    const int left = a.ow - x;
    for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
      const int c = min(vector * VECTOR, a.channels - VECTOR);
#define CLEAR(p) FV acc##p = 0;
      REPEAT(TILE_P, CLEAR)
      for (int ky = ky_first; ky < ky_last; ++ky) {
        __global const T *const row = AT(in) + n * a.in_n + (iy + ky * a.dh) * a.in_h + c;
        __global const T *const w = AT(weights) + ky * KW * a.channels + c;
#pragma unroll
        for (int kx = 0; kx < KW; ++kx) {
          const FV wv = LOADV(T, VECTOR, w + kx * a.channels);
#define TAP(p)                                                                                  \
  {                                                                                             \
    const int ix = ix0 + p * SW + kx * DW;                                                      \
    acc##p =                                                                                    \
        fma(LOADV(T, VECTOR, ((uint)ix < (uint)a.iw ? row + ix * a.in_w : zeros)), wv, acc##p); \
  }
          REPEAT(TILE_P, TAP)
        }
      }
      __global T *const to = AT(out) + n * a.out_n + y * a.out_h + x * a.out_w + c;
#define STORE(p) \
  if (p < left) STOREV(T, VECTOR, TAIL(acc##p, n, y, x + p, c, VECTOR), to + p * a.out_w);
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
