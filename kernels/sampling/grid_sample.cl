// Samples the data at the points of a grid, interpolating between pixels. A work-item computes
// VECTOR channels of one point. Defines besides VECTOR and those of grid_taps.cl:
//   T, GRID  storage types of the data and of the grid
//   LOCAL    size of the work-group

typedef struct {
#include "kernels/sampling/grid_sample_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

#include "kernels/sampling/grid_taps.cl"

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), IN(GRID, grid), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  int rest = get_global_id(0);
  if (rest >= a.items) return;
  const int c = rest % a.vectors * VECTOR;
  rest /= a.vectors;
  const int x = rest % a.ow;
  rest /= a.ow;
  const int y = rest % a.oh, n = rest / a.oh;
  __global const GRID* const place = AT(grid) + n * a.grid_n + y * a.grid_c + x * a.grid_h;
  int xs[TAPS], ys[TAPS];
  float across[TAPS], down[TAPS];
  FN(taps)(LOADV(GRID, 1, place), a.iw, xs, across);
  FN(taps)(LOADV(GRID, 1, place + a.grid_w), a.ih, ys, down);
  __global const T* const image = AT(in) + n * a.in_n + c * a.in_c;
  FV sum = 0;
  for (int i = 0; i < TAPS; ++i)
    for (int k = 0; k < TAPS; ++k)
      if (ys[i] >= 0 && xs[k] >= 0)
        sum = fma(LOADV(T, VECTOR, image + ys[i] * a.in_h + xs[k] * a.in_w),
                  (FV)(down[i] * across[k]), sum);
  const FV v = TAIL(sum, n, y, x, c, VECTOR);
  STOREV(T, VECTOR, v, AT(out) + n * a.out_n + c * a.out_c + y * a.out_h + x * a.out_w);
}
