// Computes Interpolate on channels-last tensors. A work-item computes TILE_P neighbouring pixels of
// a row x VECTOR channels. Every mode is a table: for each output position along each axis, the
// first input position and the weights of the KW (KH, kd) positions from there on. Columns of the
// input stay in registers while the tile's pixels lie between the same ones: with an axis that
// grows eightfold, a tile reads each column only once or twice. The last vector of channels
// overlaps the one before it if the channels are no multiple of VECTOR. Defines besides T, VECTOR
// and TILE_P:
//   LANES, ROWS  work-group: lanes along channels x rows of tiles
//   NEAREST      1: one position of weight 1
//   KH, KW       numbers up to 4, else members of `a`
//   COLUMNS      number of columns kept: KW if it is a number and they are reused, else 0
//   LOAD, SAVE   read and write vectors, aligned or not

typedef struct {
#include "kernels/sampling/interpolate_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(T, in), IN(int, start), IN(float, weight), OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int first = (int)get_global_id(1) * a.tiles_per_item;
  const int last = min(first + a.tiles_per_item, a.tiles);
  for (int tile = first; tile < last; ++tile) {
    const int x0 = tile % a.row_tiles * TILE_P;
    int n = tile / a.row_tiles;
    const int y = n % a.oh;
    n /= a.oh;
    const int z = n % a.od;
    n /= a.od;
    __global const T* const rows =
        AT(in) + n * a.in_n + AT(start)[a.start_d + z] * a.in_d + AT(start)[a.start_h + y] * a.in_h;
    __global T* const to = AT(out) + n * a.out_n + z * a.out_d + y * a.out_h;
#if !NEAREST
    __global const float* const wz = AT(weight) + a.weight_d + z * a.kd;
    __global const float* const wy = AT(weight) + a.weight_h + y * KH;
#endif
#if COLUMNS
    for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
      const int c = min(vector * VECTOR, a.channels - VECTOR);
      FV column[COLUMNS];
      int held = -1;
      for (int x = x0; x < min(x0 + TILE_P, a.ow); ++x) {
        const int first_w = AT(start)[a.start_w + x];
        __global const float* const wx = AT(weight) + a.weight_w + x * KW;
        if (first_w != held) {
          held = first_w;
          for (int kx = 0; kx < COLUMNS; ++kx) {
            __global const T* const from = rows + (first_w + kx) * a.in_w + c;
            column[kx] = 0;
            for (int kz = 0; kz < a.kd; ++kz)
              for (int ky = 0; ky < KH; ++ky)
                column[kx] = fma(LOAD(T, VECTOR, from + kz * a.in_d + ky * a.in_h),
                                 (FV)(wz[kz] * wy[ky]), column[kx]);
          }
        }
        FV value = column[0] * wx[0];
        for (int kx = 1; kx < COLUMNS; ++kx) value = fma(column[kx], (FV)(wx[kx]), value);
        SAVE(T, VECTOR, TAIL(value, n, y, x, c, VECTOR), to + x * a.out_w + c);
      }
    }
#else
    for (int x = x0; x < min(x0 + TILE_P, a.ow); ++x) {
      __global const T* const from = rows + AT(start)[a.start_w + x] * a.in_w;
      for (int vector = get_global_id(0); vector < a.vectors; vector += get_global_size(0)) {
        const int c = min(vector * VECTOR, a.channels - VECTOR);
#if NEAREST
        const FV value = LOAD(T, VECTOR, from + c);
#else
        __global const float* const wx = AT(weight) + a.weight_w + x * KW;
        FV value = 0;
        for (int kz = 0; kz < a.kd; ++kz)
          for (int ky = 0; ky < KH; ++ky) {
            __global const T* const row = from + kz * a.in_d + ky * a.in_h + c;
            FV sum = LOAD(T, VECTOR, row) * wx[0];
            for (int kx = 1; kx < KW; ++kx)
              sum = fma(LOAD(T, VECTOR, row + kx * a.in_w), (FV)(wx[kx]), sum);
            value = fma(sum, (FV)(wz[kz] * wy[ky]), value);
          }
#endif
        SAVE(T, VECTOR, TAIL(value, n, y, x, c, VECTOR), to + x * a.out_w + c);
      }
    }
#endif
  }
}
