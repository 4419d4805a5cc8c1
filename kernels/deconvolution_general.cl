// Transposed convolution with any strides, groups and up to three spatial dimensions; weights may
// be a run-time tensor. One work-item computes one element of the output. Defines: T, WT (type of
// the weights), LOCAL (work-group).

typedef struct {
  int in_n, in_c, in_d, in_h, in_w, out_n, out_c, out_d, out_h, out_w;  // strides
  int w_group, w_out, w_in, w_d, w_h, w_w;                              // strides of the weights
  int id, ih, iw, od, oh, ow, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw;
  int in_channels, out_channels, all_channels;
  int elements;
} FN(Args);

__attribute__((reqd_work_group_size(LOCAL, 1, 1)))
KERNEL(IN(T, in), IN(WT, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int rest = get_global_id(0);
  if (rest >= a.elements) return;
  const int c = rest % a.all_channels;
  rest /= a.all_channels;
  const int x = rest % a.ow;
  rest /= a.ow;
  const int y = rest % a.oh;
  rest /= a.oh;
  const int z = rest % a.od, n = rest / a.od;
  const int group = c / a.out_channels;
  __global const T* const from = AT(in) + n * a.in_n + group * a.in_channels * a.in_c;
  __global const WT* const w =
      AT(weights) + group * a.w_group + (c - group * a.out_channels) * a.w_out;
  float sum = 0;
  for (int kz = 0; kz < a.kd; ++kz) {
    const int tz = z + a.pd - kz * a.dd, iz = tz / a.sd;
    if (tz < 0 || iz * a.sd != tz || iz >= a.id) continue;
    for (int ky = 0; ky < a.kh; ++ky) {
      const int ty = y + a.ph - ky * a.dh, iy = ty / a.sh;
      if (ty < 0 || iy * a.sh != ty || iy >= a.ih) continue;
      for (int kx = 0; kx < a.kw; ++kx) {
        const int tx = x + a.pw - kx * a.dw, ix = tx / a.sw;
        if (tx < 0 || ix * a.sw != tx || ix >= a.iw) continue;
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
