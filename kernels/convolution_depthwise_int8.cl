// Depthwise convolution of bytes on channels-last activations: a work-item computes TILE_P
// neighbouring pixels of a row x VECTOR channels, exactly, in f32. Weights are packed as floats [kh]
// [kw][channel]; the zero points of all channels stand for every pixel outside the input. The last
// vector of channels overlaps the one before where needed. Defines: T (of the output), VECTOR,
// TILE_P, LANES, ROWS (work-group: lanes along channels x rows of tiles), HAS_ZERO (zero points are
// not all 0), KH, KW, SW, DW (numbers where the loops are to be unrolled, else members of `a`).

typedef struct {
  int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
  int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
  int channels, vectors;
  int row_tiles, tiles,
      tiles_per_item;  // tiles of a row, of all rows of all images, of a work-item
} FN(Args);

#define FV FLOATV(VECTOR)
#if HAS_ZERO
#define VALUE(p) (LOADV(uchar, VECTOR, p) - zero)
#else
#define VALUE(p) LOADV(uchar, VECTOR, p)
#endif

__attribute__((reqd_work_group_size(LANES, ROWS, 1)))
KERNEL(IN(uchar, in), IN(float, weights), IN(uchar, zeros), OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  int x = first % a.row_tiles * TILE_P, y = first / a.row_tiles, n = y / a.oh;
  y -= n * a.oh;
  for (int tile = first; tile < last; ++tile) {
    const int iy = y * a.sh - a.ph, ix0 = x * SW - a.pw;
    // Rows of the kernel that meet the input.
    const int ky_first = iy < 0 ? min((a.dh - 1 - iy) / a.dh, KH) : 0;
    const int ky_last = min(KH, iy < a.ih ? (a.ih - iy + a.dh - 1) / a.dh : 0);
    const int left = a.ow - x;
    const int inside = (ix0 >= 0) & (ix0 + (TILE_P - 1) * SW + (KW - 1) * DW < a.iw);
    for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
      const int c = min(vector * VECTOR, a.channels - VECTOR);
      __global const uchar *const outside = AT(zeros) + c;
#if HAS_ZERO
      const FV zero = LOADV(uchar, VECTOR, outside);
#endif
#define CLEAR(p) FV acc##p = 0;
      REPEAT(TILE_P, CLEAR)
#define TAP(p) acc##p = fma(VALUE(AT_PIXEL(ix0 + p * SW + kx * DW)), wv, acc##p);
#define ROWS_OF_TAPS                                                                              \
  for (int ky = ky_first; ky < ky_last; ++ky) {                                                   \
    __global const uchar *const row = AT(in) + n * a.in_n + (iy + ky * a.dh) * a.in_h + c;        \
    __global const float *const w = AT(weights) + ky * KW * a.channels + c;                       \
    _Pragma("unroll") for (int kx = 0; kx < KW; ++kx) {                                           \
      const FV wv = LOADV(float, VECTOR, w + kx * a.channels);                                    \
      REPEAT(TILE_P, TAP)                                                                         \
    }                                                                                             \
  }
#define AT_PIXEL(ix) (row + (ix)*a.in_w)
      if (inside) {
        ROWS_OF_TAPS
      } else {
#undef AT_PIXEL
#define AT_PIXEL(ix) ((uint)(ix) < (uint)a.iw ? row + (ix)*a.in_w : outside)
        ROWS_OF_TAPS
      }
#undef AT_PIXEL
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
