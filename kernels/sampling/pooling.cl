// Computes MaxPool and AvgPool on channels-last tensors. A work-item computes TILE_P neighbouring
// pixels of a row x VECTOR channels. The last vector of channels overlaps the one before it if the
// channels are no multiple of VECTOR. Defines besides VECTOR and TILE_P:
//   T, OUT_T     types of input and output
//   MODE         0 maximum, 1 average of the elements inside the input, 2 average including pads
//   LANES, ROWS  work-group: lanes along channels x rows of tiles
//   UNROLL       1: KH, KW, SW, DW are numbers, else members of `a`
//   LOAD, SAVE   read and write vectors, aligned or not
//   LEVEL        the type in which maxima of bytes are compared
//   ALIGNED      whether vectors of bytes are aligned

typedef struct {
#include "kernels/sampling/pooling_args.cl"
} FN(Args);

#if UNROLL
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

#include "kernels/sampling/pooling_window.cl"

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(T, in), OUT(OUT_T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  for (int tile = first; tile < last; ++tile) {
    const int x = tile % a.row_tiles * TILE_P;
    int n = tile / a.row_tiles;
    const int y = n % a.oh;
    n /= a.oh;
    const int z = n % a.od;
    n /= a.od;
    const int iz = z * a.sd - a.pd, iy = y * a.sh - a.ph, ix0 = x * SW - a.pw;
    const int kz_first = FN(first)(iz, a.dd, a.kd), kz_last = FN(last)(iz, a.dd, a.kd, a.id);
    const int ky_first = FN(first)(iy, a.dh, KH), ky_last = FN(last)(iy, a.dh, KH, a.ih);
#if MODE == 1
    const int counted = max(kz_last - kz_first, 0) * max(ky_last - ky_first, 0);
#elif MODE == 2
    const int counted = FN(last)(iz, a.dd, a.kd, a.end_d) * FN(last)(iy, a.dh, KH, a.end_h);
#endif
    const bool inside =
        x + TILE_P <= a.ow && ix0 >= 0 && ix0 + (TILE_P - 1) * SW + (KW - 1) * DW < a.iw;
    for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
      const int c = min(vector * VECTOR, a.channels - VECTOR);
      __global const T* const image = AT(in) + n * a.in_n + iz * a.in_d + iy * a.in_h + c;
      __global OUT_T* const to =
          AT(out) + n * a.out_n + z * a.out_d + y * a.out_h + x * a.out_w + c;
#define CLEAR(p) ACC acc##p = START;
      REPEAT(TILE_P, CLEAR)
      for (int kz = kz_first; kz < kz_last; ++kz)
        for (int ky = ky_first; ky < ky_last; ++ky) {
          __global const T* const row = image + kz * a.dd * a.in_d + ky * a.dh * a.in_h;
          if (inside) {
            UNROLLED for (int kx = 0; kx < KW; ++kx) {
#define TAP(p) ACCUMULATE(acc##p, READ(row + (ix0 + p * SW + kx * DW) * a.in_w));
              REPEAT(TILE_P, TAP)
            }
          } else {
            // Lets taps outside load the nearest column, so that loads wait for no condition and
            // overlap.
#define END_TAPS(p)                                                         \
  UNROLLED for (int kx = 0; kx < KW; ++kx) {                                \
    const int ix = ix0 + p * SW + kx * DW, column = clamp(ix, 0, a.iw - 1); \
    ACC with = acc##p;                                                      \
    ACCUMULATE(with, READ(row + column * a.in_w));                          \
    acc##p = ix == column ? with : acc##p;                                  \
  }
            REPEAT(TILE_P, END_TAPS)
          }
        }
#if MODE == 0
#define SCALE(p)
#elif MODE == 1
#define SCALE(p)                                                                        \
  const int begin##p = ix0 + p * SW;                                                    \
  const int taps##p =                                                                   \
      counted * max(FN(last)(begin##p, DW, KW, a.iw) - FN(first)(begin##p, DW, KW), 0); \
  acc##p *= taps##p > 0 ? 1.0f / taps##p : 0.0f;
#else
#define SCALE(p)                                                         \
  const int taps##p = counted * FN(last)(ix0 + p * SW, DW, KW, a.end_w); \
  acc##p *= taps##p > 0 ? 1.0f / taps##p : 0.0f;
#endif
#define STORE(p)                                           \
  if (x + p < a.ow) {                                      \
    SCALE(p)                                               \
    SAVE_RESULT(acc##p, n, y, x + p, c, to + p * a.out_w); \
  }
      REPEAT(TILE_P, STORE)
    }
  }
}
