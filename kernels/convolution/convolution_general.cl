// Computes convolutions, plain or transposed, with any strides, groups and up to three spatial
// dimensions. Weights may be a run-time tensor. One work-item computes one element of the output.
// Defines:
//   T, WT           types of the activations and of the weights
//   LOCAL           size of the work-group
//   TRANSPOSED      the convolution is transposed
//   CHANNELS_INNER  neighbouring work-items compute neighbouring channels, else pixels

typedef struct {
#include "kernels/convolution/convolution_general_args.cl"
} FN(Args);

// Returns the input position that output `o` reads at tap `k`; below 0 or past the end if there is
// none.
inline int FN(meets)(int o, int k, int stride, int dilation, int pad) {
#if TRANSPOSED
  const int t = o + pad - k * dilation;
  return t >= 0 && t % stride == 0 ? t / stride : -1;
#else
  return o * stride - pad + k * dilation;
#endif
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), IN(WT, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
#define CHANNELS a.all_channels
#include "kernels/common/element_position.cl"
  const int group = c / a.out_channels;
  __global const T* const from = AT(in) + n * a.in_n + group * a.in_channels * a.in_c;
  __global const WT* const w =
      AT(weights) + group * a.w_group + (c - group * a.out_channels) * a.w_out;
  float sum = 0;
  for (int kz = 0; kz < a.kd; ++kz) {
    const int iz = FN(meets)(z, kz, a.sd, a.dd, a.pd);
    if (iz < 0 || iz >= a.id) continue;
    for (int ky = 0; ky < a.kh; ++ky) {
      const int iy = FN(meets)(y, ky, a.sh, a.dh, a.ph);
      if (iy < 0 || iy >= a.ih) continue;
      for (int kx = 0; kx < a.kw; ++kx) {
        const int ix = FN(meets)(x, kx, a.sw, a.dw, a.pw);
        if (ix < 0 || ix >= a.iw) continue;
        __global const T* p = from + iz * a.in_d + iy * a.in_h + ix * a.in_w;
        __global const WT* q = w + kz * a.w_d + ky * a.w_h + kx * a.w_w;
        for (int i = 0; i < a.in_channels; ++i)
          sum = fma(LOADV(T, 1, p + i * a.in_c), LOADV(WT, 1, q + i * a.w_in), sum);
      }
    }
  }
  __global T* const to =
      AT(out) + n * a.out_n + c * a.out_c + z * a.out_d + y * a.out_h + x * a.out_w;
  STOREV(T, 1, TAIL(sum, n, y, x, c, 1), to);
}
