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
//   TAIL_STORES                the tail stores a second output
//   IN_LINE, LINE_OF_ROW(i)    the pixels are those of lines of image n: of line y, or of this one
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
#ifndef LINE_OF_ROW
#define LINE_OF_ROW(i) y
#endif
#if ROWS_OF_ITEM > 1
#define ROWS_TOGETHER 2
#else
#define ROWS_TOGETHER 1
#endif
UNROLL for (int first = 0; first < ROWS_OF_ITEM; first += ROWS_TOGETHER) {
  // Two pixels share what the tail reads of a channel. A pixel that does not exist is computed at
  // the place of one that does, but not stored: a branch around it would end the sharing.
  bool exists[ROWS_TOGETHER], any_exists = false;
  int ns[ROWS_TOGETHER], ys[ROWS_TOGETHER], xs[ROWS_TOGETHER], offsets[ROWS_TOGETHER];
  UNROLL for (int i = 0; i < ROWS_TOGETHER; ++i) {
    const int row_pixel = first_pixel + (first + i) * PIXELS_APART;
#if IN_LINE
    const int row_line = LINE_OF_ROW(first + i);
    exists[i] = (row_pixel < a.ow) & (row_line < a.oh);
    ns[i] = n;
    ys[i] = min(row_line, a.oh - 1);
    xs[i] = min(row_pixel, a.ow - 1);
#else
    const int pixel = min(row_pixel, a.pixels - 1);
    exists[i] = row_pixel < a.pixels;
#if POINTWISE && FLAT_TAIL
    ns[i] = ys[i] = 0;
    xs[i] = pixel;
#else
    const int line = QUOTIENT(pixel, ow);
    ns[i] = QUOTIENT(line, oh);
    ys[i] = line - ns[i] * a.oh;
    xs[i] = pixel - line * a.ow;
#endif
#if GAPS
    exists[i] &= (xs[i] < a.iw) & (ys[i] < a.ih);
    ys[i] = min(ys[i], a.ih - 1);
    xs[i] = min(xs[i], a.iw - 1);
#endif
#endif
#if POINTWISE && !IN_LINE
    offsets[i] = pixel * a.out_w;
#else
    offsets[i] = ns[i] * a.out_n + ys[i] * a.out_h + xs[i] * a.out_w;
#endif
    any_exists |= exists[i];
  }
  if (!any_exists) continue;
  // Reads all operands of the tail before the first vector is stored, because the compiler does
  // not move reads across stores and would wait for each one.
  FV values[ROWS_TOGETHER][VECTORS];
  UNROLL for (int k = 0; k < VECTORS; ++k) {
    const int in_group = first_channel + k * (4 * VECTOR), left = LEFT_OF(in_group);
    if (left > 0) {
      UNROLL for (int i = 0; i < ROWS_TOGETHER; ++i) {
#if TAIL_STORES
        if (!exists[i]) continue;
#endif
        float sums_of_vector[VECTOR];
        UNROLL for (int j = 0; j < VECTOR; ++j) {
          sums_of_vector[j] = FLOAT_OF(SUM_OF(first + i, k, j));
        }
        values[i][k] = TAIL(LOADV_PRIVATE(VECTOR, sums_of_vector), ns[i], ys[i], xs[i],
                            group * a.out_channels + in_group, left);
      }
    }
  }
  UNROLL for (int i = 0; i < ROWS_TOGETHER; ++i) {
    if (!exists[i]) continue;
    UNROLL for (int k = 0; k < VECTORS; ++k) {
      const int in_group = first_channel + k * (4 * VECTOR), left = LEFT_OF(in_group);
      if (left > 0) {
        __global T* const to = AT(out) + offsets[i] + group * a.out_channels + in_group;
        STORE_CHANNELS(values[i][k], to, left)
      }
    }
  }
}
