// Stores the sums of a work-item of a kernel that uses matrix instructions. The including kernel
// defines:
//   first_pixel, ROWS_OF_ITEM  its pixels: every eighth from the first on
//   group, first_channel       the group of channels, and its first channel in the group: VECTORS
//                              vectors, 4 * VECTOR channels apart
//   SUM_OF(i, k, j)            the sum of pixel i, vector k, element j
#if ALIGNED
#define STORE_CHANNELS(v, to, left)     \
  if (left >= VECTOR) {                 \
    STOREV_ALIGNED(T, VECTOR, v, to);   \
  } else {                              \
    STORE_FIRST(T, VECTOR, v, to, left) \
  }
#else
#define STORE_CHANNELS(v, to, left) STORE_FIRST(T, VECTOR, v, to, left)
#endif
UNROLL for (int i = 0; i < ROWS_OF_ITEM; ++i) {
  const int pixel = first_pixel + i * 8;
  if (pixel < a.pixels) {
#if POINTWISE
    const int offset = pixel * a.out_w;
#if FLAT_TAIL
    const int n = 0, y = 0, x = pixel;
#else
    const int n = pixel / (a.oh * a.ow), y = pixel / a.ow % a.oh, x = pixel % a.ow;
#endif
#else
    const int line = pixel / a.ow, n = line / a.oh, y = line - n * a.oh, x = pixel - line * a.ow;
    const int offset = n * a.out_n + y * a.out_h + x * a.out_w;
#endif
    UNROLL for (int k = 0; k < VECTORS; ++k) {
      const int in_group = first_channel + k * (4 * VECTOR), left = a.out_channels - in_group;
      if (left > 0) {
        const int c = group * a.out_channels + in_group;
        float sums_of_vector[VECTOR];
        UNROLL for (int j = 0; j < VECTOR; ++j) { sums_of_vector[j] = SUM_OF(i, k, j); }
        const FV v = TAIL(LOADV_PRIVATE(VECTOR, sums_of_vector), n, y, x, c, left);
        __global T* const to = AT(out) + offset + c;
        STORE_CHANNELS(v, to, left)
      }
    }
  }
}
