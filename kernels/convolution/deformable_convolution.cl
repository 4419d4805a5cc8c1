// Computes convolutions whose taps are displaced by offsets computed at run time, and interpolated
// between four pixels. A work-item computes one pixel x VECTOR output channels of a group, which
// share each sample. Weights are packed as [group][block][kh][kw][input channel][VECTOR]. Defines
// besides T and VECTOR:
//   MASK    a third input weights the samples
//   BORDER  samples may lie up to a pixel outside, where the input is 0; otherwise samples outside
//           are 0 and those at the edge are clamped to it
//   LOCAL   size of the work-group

typedef struct {
#include "kernels/convolution/deformable_convolution_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

// The addresses of the four pixels around (y, x) and their weights.
typedef struct {
  int at[4];
  float share[4];
} FN(Sample);

bool FN(locate)(float y, float x, const FN(Args) * a, FN(Sample) * s) {
#if BORDER
  if (!(y > -1 && y < a->ih && x > -1 && x < a->iw)) return false;
  const int y1 = (int)floor(y), x1 = (int)floor(x), y2 = y1 + 1, x2 = x1 + 1;
#else
  if (!(y >= 0 && y < a->ih && x >= 0 && x < a->iw)) return false;
  const int y1 = (int)floor(y), x1 = (int)floor(x);
  const int y2 = min((int)ceil(y), a->ih - 1), x2 = min((int)ceil(x), a->iw - 1);
#endif
  const float fy = y - y1, fx = x - x1;
  const int ys[4] = {y1, y1, y2, y2}, xs[4] = {x1, x2, x1, x2};
  const float shares[4] = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
  for (int k = 0; k < 4; ++k) {
    const bool inside = ys[k] >= 0 && ys[k] < a->ih && xs[k] >= 0 && xs[k] < a->iw;
    s->at[k] = inside ? ys[k] * a->in_h + xs[k] * a->in_w : 0;
    s->share[k] = inside ? shares[k] : 0;
  }
  return true;
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), IN(T, offsets), IN(T, weights),
#if MASK
       IN(T, mask),
#endif
       OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int rest = get_global_id(0);
  if (rest >= a.items) return;
  const int all_block = rest % a.all_blocks;
  rest /= a.all_blocks;
  const int x = rest % a.ow;
  rest /= a.ow;
  const int y = rest % a.oh, n = rest / a.oh;
  const int group = all_block / a.blocks, in_group = (all_block - group * a.blocks) * VECTOR;
  const int left = a.out_channels - in_group, c = group * a.out_channels + in_group;
  __global const T* const image = AT(in) + n * a.in_n;
  __global const T* const moves = AT(offsets) + n * a.off_n + y * a.off_h + x * a.off_w;
  __global const T* w = AT(weights) + all_block * (a.kh * a.kw * a.in_channels * VECTOR);
  const FN(Args) geometry = a;
  FV sum = 0;
  for (int tap = 0; tap < a.kh * a.kw; ++tap) {
    const float iy = y * a.sh - a.ph + tap / a.kw * a.dh, ix = x * a.sw - a.pw + tap % a.kw * a.dw;
    FN(Sample) sample;
    bool inside = false;
    for (int i = 0; i < a.in_channels; ++i, w += VECTOR) {
      const int channel = group * a.in_channels + i;
      if (i == 0 || channel % a.deformed == 0) {
        const int at = channel / a.deformed * a.kh * a.kw + tap;
        inside = FN(locate)(iy + LOADV(T, 1, moves + 2 * at * a.off_c),
                            ix + LOADV(T, 1, moves + (2 * at + 1) * a.off_c), &geometry, &sample);
#if MASK
        const float weight =
            LOADV(T, 1, AT(mask) + n * a.mask_n + at * a.mask_c + y * a.mask_h + x * a.mask_w);
        for (int k = 0; k < 4; ++k) sample.share[k] *= weight;
#endif
      }
      if (!inside) continue;
      float value = 0;
      for (int k = 0; k < 4; ++k)
        value = fma(LOADV(T, 1, image + channel * a.in_c + sample.at[k]), sample.share[k], value);
      sum = fma((FV)value, LOADV_ALIGNED(T, VECTOR, w), sum);
    }
  }
  const FV v = TAIL(sum, n, y, x, c, left);
  __global T* const to = AT(out) + n * a.out_n + y * a.out_h + x * a.out_w + c * a.out_c;
  float part[VECTOR];
  STOREV_PRIVATE(VECTOR, v, part);
  for (int i = 0; i < min(left, VECTOR); ++i) STOREV(T, 1, part[i], to + i * a.out_c);
}
