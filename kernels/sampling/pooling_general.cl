// Computes MaxPool and AvgPool on any strides, and the positions of the maxima. One work-item
// computes one element of the output. Defines:
//   T, OUT_T        types of input and output
//   MODE            as in pooling.cl
//   INDICES         1: writes the second output
//   CHANNELS_INNER  1: neighbouring work-items compute neighbouring channels, else pixels
//   LOCAL           size of the work-group

typedef struct {
#include "kernels/sampling/pooling_general_args.cl"
} FN(Args);

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), OUT(OUT_T, out),
#if INDICES
       OUT(int, index),
#endif
       const FN(Args) a TAIL_PARAMS) {
#define CHANNELS a.channels
#include "kernels/common/element_position.cl"
  const int iz0 = z * a.sd - a.pd, iy0 = y * a.sh - a.ph, ix0 = x * a.sw - a.pw;
  __global const T* const from = AT(in) + n * a.in_n + c * a.in_c;
  float result = MODE == 0 ? -INFINITY : 0.0f;
  int inside = 0, counted = 0, at = 0;
  for (int kz = 0; kz < a.kd; ++kz) {
    const int iz = iz0 + kz * a.dd;
    for (int ky = 0; ky < a.kh; ++ky) {
      const int iy = iy0 + ky * a.dh;
      for (int kx = 0; kx < a.kw; ++kx) {
        const int ix = ix0 + kx * a.dw;
        counted += iz < a.end_d && iy < a.end_h && ix < a.end_w;
        if (iz < 0 || iz >= a.id || iy < 0 || iy >= a.ih || ix < 0 || ix >= a.iw) continue;
        const float value = LOADV(T, 1, from + iz * a.in_d + iy * a.in_h + ix * a.in_w);
#if MODE == 0
        if (value > result || inside == 0 || (value != value && result == result)) {
          result = value;
          at = (iz * a.ih + iy) * a.iw + ix;
        }
#else
        result += value;
#endif
        ++inside;
      }
    }
  }
#if MODE != 0
  const int taps = MODE == 1 ? inside : counted;
  result = taps > 0 ? result / taps : 0.0f;
#endif
  __global OUT_T* const to =
      AT(out) + n * a.out_n + c * a.out_c + z * a.out_d + y * a.out_h + x * a.out_w;
  STOREV(OUT_T, 1, TAIL(result, n, y, x, c, 1), to);
#if INDICES
  const int flat = (n * a.channels + c) * a.id * a.ih * a.iw + at;
  AT(index)
  [n * a.index_n + c * a.index_c + z * a.index_d + y * a.index_h + x * a.index_w] =
      flat % a.index_range;
#endif
}
