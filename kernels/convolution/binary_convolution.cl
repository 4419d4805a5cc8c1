// Convolves signs: computes sums of +1 and -1 by xnor and popcount. Defines:
//   STEP   0 packs the signs of 32 input channels of a pixel into a word (bits past the last
//          channel are 0, as in the weights), 1 computes one element of the output
//   T      storage type
//   LOCAL  size of the work-group

typedef struct {
#include "kernels/convolution/binary_convolution_args.cl"
} FN(Args);

WORK_GROUP(LOCAL, 1, 1)
#if STEP == 0
KERNEL(IN(T, in), OUT(uint, signs), const FN(Args) a) {
  const int item = get_global_id(0);
  if (item >= a.items) return;
  int rest = item;
  const int first = rest % a.words * 32;
  rest /= a.words;
  const int x = rest % a.iw;
  rest /= a.iw;
  const int y = rest % a.ih, n = rest / a.ih;
  __global const T* const from = AT(in) + n * a.in_n + y * a.in_h + x * a.in_w + first * a.in_c;
  uint word = 0;
  for (int i = 0; i < min(32, a.in_channels - first); ++i)
    word |= (uint)(LOADV(T, 1, from + i * a.in_c) > 0) << i;
  AT(signs)[item] = word;
}
#else
KERNEL(IN(uint, signs), IN(uint, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int rest = get_global_id(0);
  if (rest >= a.items) return;
  const int c = rest % a.out_channels;
  rest /= a.out_channels;
  const int x = rest % a.ow;
  rest /= a.ow;
  const int y = rest % a.oh, n = rest / a.oh;
  __global const uint* w = AT(weights) + c * a.kh * a.kw * a.words;
  int sum = 0;
  for (int ky = 0; ky < a.kh; ++ky)
    for (int kx = 0; kx < a.kw; ++kx, w += a.words) {
      const int iy = y * a.sh - a.ph + ky * a.dh, ix = x * a.sw - a.pw + kx * a.dw;
      const bool inside = iy >= 0 && iy < a.ih && ix >= 0 && ix < a.iw;
      if (!inside && a.pad == 0) continue;
      __global const uint* const s = AT(signs) + ((n * a.ih + iy) * a.iw + ix) * a.words;
      int differing = 0;
      for (int i = 0; i < a.words; ++i) differing += popcount(w[i] ^ (inside ? s[i] : 0));
      const int equal = a.in_channels - differing;
      // Outside of the image all words mean -1; for a pad of 1 the sum is negated.
      const int total = equal - differing;
      sum += inside || a.pad < 0 ? total : -total;
    }
  __global T* const to = AT(out) + n * a.out_n + y * a.out_h + x * a.out_w + c * a.out_c;
  STOREV(T, 1, TAIL((float)sum, n, y, x, c, 1), to);
}
#endif
