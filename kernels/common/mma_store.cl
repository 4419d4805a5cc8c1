// Stores the sums of a work-item of a kernel that uses matrix instructions. The including kernel
// defines:
//   first_pixel, ROWS_OF_ITEM  its pixels: every eighth from the first on, or every PIXELS_APART-th
//   group, first_channel       the group of channels, and its first channel in the group: VECTORS
//                              vectors, 4 * VECTOR channels apart
//   SUM_OF(i, k, j)            the sum of pixel i, vector k, element j
//   SMALL_SUMS                 of bytes: the sums are the bits of floats, 1.5 * 2^23 larger
//   ALIGNED, PAIRS             vectors of the output, or pairs of its channels, lie at multiples of their size
//   WHOLE_BLOCKS               all channels of all blocks exist
//   GAPS                       pixel numbers past the ends of lines and images stand for no pixels
//   IN_LINE                    the pixels are those of line y of image n
#if WHOLE_BLOCKS
#define LEFT_OF(in_group) VECTOR
#else
#define LEFT_OF(in_group) a.out_channels - in_group
#endif
#if ALIGNED
#define STORE_CHANNELS(v, to, left)          \
  if (left >= VECTOR) {                      \
    STOREV_ALIGNED(STORED, VECTOR, v, to);   \
  } else {                                   \
    STORE_FIRST(STORED, VECTOR, v, to, left) \
  }
#elif PAIRS
#define STORE_CHANNELS(v, to, left)                       \
  {                                                       \
    float part[VECTOR];                                   \
    STOREV_PRIVATE(VECTOR, v, part);                      \
    UNROLL for (int j = 0; j < VECTOR; j += 2) {          \
      const float2 pair = (float2)(part[j], part[j + 1]); \
      if (j + 1 < left) {                                 \
        STOREV_ALIGNED(STORED, 2, pair, to + j);          \
      } else if (j < left) {                              \
        STOREV(STORED, 1, pair.x, to + j);                \
      }                                                   \
    }                                                     \
  }
#else
#define STORE_CHANNELS(v, to, left) STORE_FIRST(STORED, VECTOR, v, to, left)
#endif
#if SMALL_SUMS
#define FLOAT_OF(sum) (as_float(sum) - 12582912.0f)
#else
#define FLOAT_OF(sum) (float)(sum)
#endif
#ifndef PIXELS_APART
#define PIXELS_APART 8
#endif
UNROLL for (int i = 0; i < ROWS_OF_ITEM; ++i) {
  const int pixel = first_pixel + i * PIXELS_APART;
#if IN_LINE
  if ((pixel < a.ow) & (y < a.oh)) {
    const int x = pixel, offset = n * a.out_n + y * a.out_h + x * a.out_w;
#else
  if (pixel < a.pixels) {
#if POINTWISE
    const int offset = pixel * a.out_w;
#if FLAT_TAIL
    const int n = 0, y = 0, x = pixel;
#else
    const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
    const int y = line - n * a.oh, x = pixel - line * a.ow;
#endif
#else
    const int line = QUOTIENT(pixel, ow), n = QUOTIENT(line, oh);
    const int y = line - n * a.oh, x = pixel - line * a.ow;
    const int offset = n * a.out_n + y * a.out_h + x * a.out_w;
#endif
#endif
#if GAPS
    if ((x >= a.iw) | (y >= a.ih)) continue;
#endif
    // Reads all operands of the tail before the first vector is stored, because the compiler does
    // not move reads across stores and would wait for each one.
    FV values[VECTORS];
    UNROLL for (int k = 0; k < VECTORS; ++k) {
      const int in_group = first_channel + k * (4 * VECTOR), left = LEFT_OF(in_group);
      if (left > 0) {
        float sums_of_vector[VECTOR];
        UNROLL for (int j = 0; j < VECTOR; ++j) { sums_of_vector[j] = FLOAT_OF(SUM_OF(i, k, j)); }
        values[k] = TAIL(LOADV_PRIVATE(VECTOR, sums_of_vector), n, y, x,
                         group * a.out_channels + in_group, left);
      }
    }
    UNROLL for (int k = 0; k < VECTORS; ++k) {
      const int in_group = first_channel + k * (4 * VECTOR), left = LEFT_OF(in_group);
      if (left > 0) {
        __global T* const to = AT(out) + offset + group * a.out_channels + in_group;
        STORE_CHANNELS(values[k], to, left)
      }
    }
  }
}
