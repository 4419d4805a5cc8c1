// LRN: x * (bias + alpha * sum of the squares around x) ^ -beta. A tensor is four loops c, w, h, n,
// innermost first; one work-item computes VECTOR elements along c. Defines besides T and VECTOR:
//   THREE_QUARTERS  1: beta is 0.75
//   LOCAL           size of the work-group

typedef struct {
#include "kernels/reduction/lrn_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

// Loads a vector; `p` points to c = 0, and elements past the ends are 0.
FV FN(part_of)(__global const T* p, int c, int size, int stride) {
  if (c >= 0 && c + VECTOR <= size) return LOADV(T, VECTOR, p + c * stride);
  float part[VECTOR];
  for (int k = 0; k < VECTOR; ++k)
    part[k] = c + k >= 0 && c + k < size ? LOADV(T, 1, p + (c + k) * stride) : 0.0f;
  return LOADV_PRIVATE(VECTOR, part);
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int left = get_global_id(0);
  if (left >= a.items) return;
  const int c = min(left % a.vectors * VECTOR, a.size_c - VECTOR);
  left /= a.vectors;
  const int w = left % a.size_w;
  left /= a.size_w;
  const int h = left % a.size_h, n = left / a.size_h;
  FV sum = 0;
  for (int jn = max(n - a.near_n, 0); jn <= min(n + a.near_n, a.size_n - 1); ++jn)
    for (int ih = max(h - a.near_h, 0); ih <= min(h + a.near_h, a.size_h - 1); ++ih)
      for (int iw = max(w - a.near_w, 0); iw <= min(w + a.near_w, a.size_w - 1); ++iw) {
        __global const T* const row = AT(in) + jn * a.in_n + ih * a.in_h + iw * a.in_w;
        for (int ic = c - a.near_c; ic <= c + a.near_c; ++ic) {
          const FV v = FN(part_of)(row, ic, a.size_c, a.in_c);
          sum = fma(v, v, sum);
        }
      }
  const FV base = fma(sum, (FV)(a.alpha), (FV)(a.bias));
#if THREE_QUARTERS
  const FV root = sqrt(base);
  const FV scale = 1.0f / (root * sqrt(root));
#else
  const FV scale = pow(base, (FV)(-a.beta));
#endif
  const FV x = LOADV(T, VECTOR, AT(in) + n * a.in_n + h * a.in_h + w * a.in_w + c * a.in_c);
  STOREV(T, VECTOR, TAIL(x * scale, n, h, w, c, VECTOR),
         AT(out) + n * a.out_n + h * a.out_h + w * a.out_w + c * a.out_c);
}
