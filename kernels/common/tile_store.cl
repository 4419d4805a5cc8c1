// Stores the sums of a tile.
#if ROLLED
// Loops over all results: if unrolled, the copies of the tail would be most of the code that a
// CPU's driver compiles.
FV results[TILE_P * VECTORS];
#define KEEP_(p, k) results[p * VECTORS + k] = RESULT(acc##p##_##k);
#if POINTWISE && FLAT_TAIL
#define KEEP(p) REPEAT_WITH(VECTORS, p, KEEP_)
#define PLACE_OF(p) PIXEL_OFFSET(p)
#define N_OF(p) TAIL_N(p)
#define Y_OF(p) TAIL_Y(p)
#define X_OF(p) TAIL_X(p)
#else
int offsets[TILE_P], ns[TILE_P], ys[TILE_P], xs[TILE_P];
#define KEEP(p)                  \
  REPEAT_WITH(VECTORS, p, KEEP_) \
  offsets[p] = PIXEL_OFFSET(p);  \
  ns[p] = TAIL_N(p), ys[p] = TAIL_Y(p), xs[p] = TAIL_X(p);
#define PLACE_OF(p) offsets[p]
#define N_OF(p) ns[p]
#define Y_OF(p) ys[p]
#define X_OF(p) xs[p]
#endif
REPEAT(TILE_P, KEEP)
const int stored = min(left, TILE_P);
// Makes pixels the inner loop, so that the tail's values per channel are read once for all pixels.
#pragma unroll 1
for (int k = 0; k < VECTORS; ++k) {
  const int channels_left = a.out_channels - lane_c - k * LANES * VECTOR;
  if (channels_left <= 0) break;
  const int c = group * a.out_channels + lane_c + k * LANES * VECTOR;
#pragma unroll 1
  for (int p = 0; p < stored; ++p) {
    const FV v = TAIL(results[p * VECTORS + k], N_OF(p), Y_OF(p), X_OF(p), c, channels_left);
    FN(store)(v, AT(out) + PLACE_OF(p) + c, channels_left);
  }
}
#else
#define STORE(p)                    \
  if (p < left) {                   \
    REPEAT_WITH(VECTORS, p, STORE_) \
  }
REPEAT(TILE_P, STORE)
#endif
