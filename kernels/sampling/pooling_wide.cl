// Computes MaxPool and AvgPool over windows of many pixels with few outputs, such as a whole image.
// SLICES work-items share the window of one output pixel, with LANES adjacent vectors of channels.
// Defines:
//   T, OUT_T       types of input and output
//   MODE           as in pooling.cl
//   VECTOR         channels of a vector
//   LANES, SLICES  work-group; SLICES is a power of 2
//   LOAD, SAVE     read and write vectors, aligned or not
//   LEVEL, ALIGNED as in pooling.cl

typedef struct {
#include "kernels/sampling/pooling_wide_args.cl"
} FN(Args);

#include "kernels/sampling/pooling_window.cl"

WORK_GROUP(LANES, SLICES, 1)
KERNEL(IN(T, in), OUT(OUT_T, out), const FN(Args) a TAIL_PARAMS) {
  SHARED(ACC, part, SLICES * LANES);
  const int lane = get_local_id(0), slice = get_local_id(1);
  const int vector = get_global_id(0);
  // Lanes past the last vector compute its values again, and do not store them.
  const int c = min(vector * VECTOR, a.channels - VECTOR);
  const int pixel_first = (int)get_group_id(1) * a.pixels_per_group;
  const int pixel_last = min(pixel_first + a.pixels_per_group, a.pixels);
  for (int pixel = pixel_first; pixel < pixel_last; ++pixel) {
    const int x = pixel % a.ow;
    int n = pixel / a.ow;
    const int y = n % a.oh;
    n /= a.oh;
    const int z = n % a.od;
    n /= a.od;
    const int iz = z * a.sd - a.pd, iy = y * a.sh - a.ph, ix = x * a.sw - a.pw;
    const int z0 = FN(first)(iz, a.dd, a.kd), y0 = FN(first)(iy, a.dh, a.kh),
              x0 = FN(first)(ix, a.dw, a.kw);
    const int depth = max(FN(last)(iz, a.dd, a.kd, a.id) - z0, 0);
    const int height = max(FN(last)(iy, a.dh, a.kh, a.ih) - y0, 0);
    const int width = max(FN(last)(ix, a.dw, a.kw, a.iw) - x0, 0);
    const int inside = depth * height * width;
    __global const T* const from = AT(in) + n * a.in_n + (iz + z0 * a.dd) * a.in_d +
                                   (iy + y0 * a.dh) * a.in_h + (ix + x0 * a.dw) * a.in_w + c;
    ACC acc = START;
    for (int tap = slice; tap < inside; tap += SLICES) {
      const int kx = tap % width, row = tap / width;
      const int ky = row % height, kz = row / height;
      ACCUMULATE(acc, READ(from + kz * a.dd * a.in_d + ky * a.dh * a.in_h + kx * a.dw * a.in_w));
    }
    part[slice * LANES + lane] = acc;
    for (int rest = SLICES / 2; rest > 0; rest /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (slice < rest) ACCUMULATE(part[slice * LANES + lane], part[(slice + rest) * LANES + lane]);
    }
    if (slice == 0 && vector < a.vectors) {
      acc = part[lane];
#if MODE != 0
#if MODE == 1
      const int taps = inside;
#else
      const int taps = FN(last)(iz, a.dd, a.kd, a.end_d) * FN(last)(iy, a.dh, a.kh, a.end_h) *
                       FN(last)(ix, a.dw, a.kw, a.end_w);
#endif
      acc *= taps > 0 ? 1.0f / taps : 0.0f;
#endif
      SAVE_RESULT(acc, n, y, x, c,
                  AT(out) + n * a.out_n + z * a.out_d + y * a.out_h + x * a.out_w + c);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
