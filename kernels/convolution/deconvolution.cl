// Computes transposed convolutions on channels-last activations. A work-item computes TILE_P pixels
// of a row that lie a stride apart, so that they use the same taps of the kernel, x VECTOR output
// channels. Weights are packed as [group][block][kd][kh][kw][input channel][VECTOR]; a row of zeros
// after the weights is read for every pixel outside the input. Defines besides T, VECTOR and
// TILE_P:
//   DEPTHWISE  one input and one output channel per group: weights are packed as
//              [kd][kh][kw][channel]
//   GROUP      size of the work-group

typedef struct {
#include "kernels/convolution/deconvolution_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T, in), IN(T, weights), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int item = get_global_id(0);
  const int first = item / a.all_blocks * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  const int all_block = item % a.all_blocks;
  const int group = all_block / a.blocks, in_group = (all_block - group * a.blocks) * VECTOR;
  const int c = group * a.out_channels + in_group;  // the first output channel
  const int left = a.out_channels - in_group;
#if DEPTHWISE
  __global const T* const start = AT(in) + c;
  __global const T* const block = AT(weights) + c;
  const int tap_weights = a.out_channels;
#else
  __global const T* const start = AT(in) + group * a.in_channels;
  const int tap_weights = a.in_channels * VECTOR;
  __global const T* const block = AT(weights) + all_block * (a.kd * a.kh * a.kw * tap_weights);
#endif
  __global const T* const zeros = AT(weights) + a.zeros;
  for (int tile = first; tile < last; ++tile) {
    int rest = tile;
    const int x_tile = rest % a.row_tiles;
    rest /= a.row_tiles;
    const int x0 = rest % a.sw + x_tile * TILE_P * a.sw;
    rest /= a.sw;
    const int y = rest % a.oh;
    rest /= a.oh;
    const int z = rest % a.od, n = rest / a.od;
    if (x0 >= a.ow) continue;
#define CLEAR(p) FV acc##p = 0;
    REPEAT(TILE_P, CLEAR)
    __global const T* w = block;
    for (int kz = 0; kz < a.kd; ++kz) {
      const int tz = z + a.pd - kz * a.dd, iz = tz / a.sd;
      for (int ky = 0; ky < a.kh; ++ky) {
        const int ty = y + a.ph - ky * a.dh, iy = ty / a.sh;
        const int row_meets =
            tz >= 0 && iz * a.sd == tz && iz < a.id && ty >= 0 && iy * a.sh == ty && iy < a.ih;
        if (!row_meets) {
          w += a.kw * tap_weights;
          continue;
        }
        __global const T* const row = start + n * a.in_n + iz * a.in_d + iy * a.in_h;
        for (int kx = 0; kx < a.kw; ++kx, w += tap_weights) {
          const int tx = x0 + a.pw - kx * a.dw;
          int ix = tx / a.sw;
          if (ix * a.sw != tx || ix >= a.iw || ix + TILE_P <= 0) continue;
#define POINT(p) \
  __global const T* const r##p = (uint)(ix + p) < (uint)a.iw ? row + (ix + p) * a.in_w : zeros;
          REPEAT(TILE_P, POINT)
#if DEPTHWISE
          const FV wv = LOADV(T, VECTOR, w);
#define TAP(p) acc##p = fma(LOADV(T, VECTOR, r##p), wv, acc##p);
          REPEAT(TILE_P, TAP)
#else
          for (int i = 0; i < a.in_channels; ++i) {
            const FV wv = LOADV_ALIGNED(T, VECTOR, w + i * VECTOR);
#define TAP(p) acc##p = fma((FV)(LOADV(T, 1, r##p + i)), wv, acc##p);
            REPEAT(TILE_P, TAP)
          }
#endif
        }
      }
    }
    __global T* const to = AT(out) + n * a.out_n + z * a.out_d + y * a.out_h + c;
#define STORE(p)                                      \
  if (x0 + p * a.sw < a.ow) {                         \
    const int x = x0 + p * a.sw;                      \
    const FV v = TAIL(acc##p, n, y, x, c, left);      \
    STORE_FIRST(T, VECTOR, v, to + x * a.out_w, left) \
  }
    REPEAT(TILE_P, STORE)
  }
}
