// Converts the planes of a video frame to one image of a network input. Each work-item computes
// ROWS rows of V neighbouring pixels. Colours are computed exactly, or bit-exact with GStreamer's
// videoconvert (8-bit coefficients); both use the chroma sample that covers the pixel. Resizing is
// bit-exact with OpenCV's INTER_LINEAR on 8-bit pixels. Defines besides V and ROWS:
//   GROUP_X, GROUP_Y  work-group
//   YUV               1: the planes are Y, U and V, else R, G and B
//   EXACT             1: exact colours
//   SAMPLE_BYTES      1, or 2 for 10 bits
//   IMAGES            1: the planes Y and UV are images of UNORM texels of SAMPLE_BYTES (surfaces of
//                     a decoder, in any tiling), 0: buffers
//   TURNED            1: the region is turned by any angle, so that each pixel has rows of its own
//   OUT_T             float, half, uchar, char or int

typedef struct {
#include "kernels/frames/preprocess_args.cl"
} FN(Args);

// Conversions to the stored type.
#define STORED_float(v) (v)
#define STORED_half(v) (v)
#define STORED_uchar(v) clamp(rint(v), 0.0f, 255.0f)
#define STORED_char(v) clamp(rint(v), -128.0f, 127.0f)
#define STORED_int(v) rint(v)
#define STORE_char_1(v, p) (*(p) = convert_char(v))
#define STORE_char_4(v, p) vstore4(convert_char4(v), 0, p)
#define STORE_char_8(v, p) vstore8(convert_char8(v), 0, p)
#define STORE_char_16(v, p) vstore16(convert_char16(v), 0, p)
#define STORE_int_1(v, p) (*(p) = convert_int(v))
#define STORE_int_4(v, p) vstore4(convert_int4(v), 0, p)
#define STORE_int_8(v, p) vstore8(convert_int8(v), 0, p)
#define STORE_int_16(v, p) vstore16(convert_int16(v), 0, p)

// One macro per width: some compilers define conversions as macros, so that names cannot be pasted
// together.
#define LANES_1 0
#define LANES_4 (int4)(0, 1, 2, 3)
#define LANES_8 (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#define LANES_16 (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define FLOATS_1(v) convert_float(v)
#define FLOATS_4(v) convert_float4(v)
#define FLOATS_8(v) convert_float8(v)
#define FLOATS_16(v) convert_float16(v)
#define ROUNDED_1(v) convert_int_rte(v)
#define ROUNDED_4(v) convert_int4_rte(v)
#define ROUNDED_8(v) convert_int8_rte(v)
#define ROUNDED_16(v) convert_int16_rte(v)
#define as_floats(v) CAT(FLOATS_, V)(v)
#define as_ints(v) CAT(ROUNDED_, V)(v)

#if TURNED
#define ROWS_T INTV(V)
#else
#define ROWS_T int
#endif

#if IMAGES
#define PLANES __read_only image2d_t luma, __read_only image2d_t chroma
#define PLANE_NAMES luma, chroma

// Loads the first and second component of the texels at V columns of one row, or of a row each. An
// UNORM value is a multiple of 1/255 or 1/65535, so rounding restores the sample.
#define UNORM_ONE (SAMPLE_BYTES == 1 ? 255.0f : 65535.0f)
INTV(V) FN(load)(__read_only image2d_t plane, INTV(V) x, ROWS_T y, INTV(V) * second) {
#if V == 1
  const float4 texel = read_imagef(plane, (int2)(x, y));
  *second = convert_int_rte(texel.y * UNORM_ONE);
  return convert_int_rte(texel.x * UNORM_ONE);
#else
  int column[V], a[V], b[V];
  CAT(vstore, V)(x, 0, column);
#if TURNED
  int line[V];
  CAT(vstore, V)(y, 0, line);
#define LINE line[i]
#else
#define LINE y
#endif
  for (int i = 0; i < V; ++i) {
    const float4 texel = read_imagef(plane, (int2)(column[i], LINE));
    a[i] = convert_int_rte(texel.x * UNORM_ONE);
    b[i] = convert_int_rte(texel.y * UNORM_ONE);
  }
  *second = CAT(vload, V)(0, b);
  return CAT(vload, V)(0, a);
#endif
}
#else
#define PLANES __global const uchar *p0, __global const uchar *p1, __global const uchar *p2
#define PLANE_NAMES c0, c1, c2

// Reads the sample at byte x of a row; its address need not be even.
#if SAMPLE_BYTES == 1
#define BYTES(p, x) (p)[x]
#else
#define BYTES(p, x) ((p)[x] | ((p)[(x) + 1] << 8))
#endif

// Loads the samples of one component at V columns of one row, x in bytes.
INTV(V) FN(load)(__global const uchar* p, INTV(V) x) {
#if V == 1
  return BYTES(p, x);
#elif V == 4
  return (int4)(BYTES(p, x.s0), BYTES(p, x.s1), BYTES(p, x.s2), BYTES(p, x.s3));
#elif V == 8
  return (int8)(BYTES(p, x.s0), BYTES(p, x.s1), BYTES(p, x.s2), BYTES(p, x.s3), BYTES(p, x.s4),
                BYTES(p, x.s5), BYTES(p, x.s6), BYTES(p, x.s7));
#else
  return (int16)(BYTES(p, x.s0), BYTES(p, x.s1), BYTES(p, x.s2), BYTES(p, x.s3), BYTES(p, x.s4),
                 BYTES(p, x.s5), BYTES(p, x.s6), BYTES(p, x.s7), BYTES(p, x.s8), BYTES(p, x.s9),
                 BYTES(p, x.sa), BYTES(p, x.sb), BYTES(p, x.sc), BYTES(p, x.sd), BYTES(p, x.se),
                 BYTES(p, x.sf));
#endif
}
#endif

// Converts a sample for the colour conversion: 10 bits for exact colours, else 8.
#if SAMPLE_BYTES == 1
#define SAMPLE(v) (v)
#elif EXACT
#define SAMPLE(v) (((v) >> a->down) & 1023)
#else
#define SAMPLE(v) ((((v) >> a->down) & 1023) >> 2)
#endif

// Computes (a - 128 as both bytes of a 16-bit number) * c / 65536, the arithmetic of videoconvert's
// colour matrix.
#define SPREAD(a) ((((a)-128) << 8) | (((a)-128) & 255))
#define SCALED(a, c) (((a) * (c)) >> 16)

// Loads samples of component i at columns x of row y, or of a row each.
#if TURNED
#define COMPONENT(p, i, x, y) FN(load)(p, (y)*a->row_stride[i] + (x)*a->step[i])
#else
#define COMPONENT(p, i, x, y) FN(load)(p + (y)*a->row_stride[i], (x)*a->step[i])
#endif

// Computes R, G and B of the pixels in columns x of row y of the frame, or of a row each.
void FN(pixels)(PLANES, const FN(Args) * a, ROWS_T y, INTV(V) x, INTV(V) * r, INTV(V) * g,
                INTV(V) * b) {
#if YUV
  const ROWS_T cy = y >> a->shift_y;
  const INTV(V) cx = x >> a->shift_x;
#if IMAGES
  INTV(V) second, none;
  const INTV(V) first = FN(load)(chroma, cx, cy, &second);
  const INTV(V) l = SAMPLE(FN(load)(luma, x, y, &none)), cb = SAMPLE(first), cr = SAMPLE(second);
#else
  const INTV(V) l = SAMPLE(COMPONENT(p0, 0, x, y));
  const INTV(V) cb = SAMPLE(COMPONENT(p1, 1, cx, cy));
  const INTV(V) cr = SAMPLE(COMPONENT(p2, 2, cx, cy));
#endif
#if EXACT
  // Uses fixed point with `fraction_bits` bits of fraction, rounded to 8 bits.
  const INTV(V) u = cb - a->middle, v = cr - a->middle;
  const INTV(V) grey = (l - a->black) * a->coefficient[0] + (1 << (a->fraction_bits - 1));
  *r = clamp((grey + v * a->coefficient[1]) >> a->fraction_bits, 0, 255);
  *g = clamp((grey + u * a->coefficient[3] + v * a->coefficient[4]) >> a->fraction_bits, 0, 255);
  *b = clamp((grey + u * a->coefficient[2]) >> a->fraction_bits, 0, 255);
#else
  const INTV(V) u = SPREAD(cb), v = SPREAD(cr);
  const INTV(V) grey = SCALED(SPREAD(l), a->coefficient[0]);
  *r = clamp(grey + SCALED(v, a->coefficient[1]), -128, 127) + 128;
  *g = clamp(grey + SCALED(u, a->coefficient[3]) + SCALED(v, a->coefficient[4]), -128, 127) + 128;
  *b = clamp(grey + SCALED(u, a->coefficient[2]), -128, 127) + 128;
#endif
#else
  *r = COMPONENT(p0, 0, x, y);
  *g = COMPONENT(p1, 1, x, y);
  *b = COMPONENT(p2, 2, x, y);
#endif
}

// Combines two weighted rows to one 8-bit value. Weights are in units of 1/2048.
#define BLEND(top, bottom, w0, w1) \
  (((((w0) * ((top) >> 4)) >> 16) + (((w1) * ((bottom) >> 4)) >> 16) + 2) >> 2)

WORK_GROUP(GROUP_X, GROUP_Y, 1)
KERNEL(
#if IMAGES
    PLANES,
#else
    IN(uchar, p0), IN(uchar, p1), IN(uchar, p2),
#endif
    OUT(OUT_T, out), const FN(Args) a) {
  const int column = (int)get_global_id(0) * V, first_row = (int)get_global_id(1) * ROWS;
  if (column >= a.width) return;
#if !IMAGES
  __global const uchar* c0 = AT(p0) + a.component_offset[0];
  __global const uchar* c1 = AT(p1) + a.component_offset[1];
  __global const uchar* c2 = AT(p2) + a.component_offset[2];
#endif

  const INTV(V) lane = CAT(LANES_, V);
  const INTV(V) x = clamp(column + lane - a.to_x, 0, a.to_width - 1);
#if !TURNED
  // Finds the columns on either side of each pixel; exact in integers, then rounded as OpenCV
  // rounds.
  const INTV(V) numerator = max((2 * x + 1) * a.from_width - a.to_width, 0);
  INTV(V) x0 = numerator / (2 * a.to_width);
  FLOATV(V) share = as_floats(numerator - x0 * (2 * a.to_width)) / (float)(2 * a.to_width);
  share = (as_floats(x0) + share) - as_floats(x0);
  INTV(V) wx0 = as_ints((1.0f - share) * 2048.0f), wx1 = as_ints(share * 2048.0f);
  const INTV(V) x1 = min(x0 + 1, a.from_width - 1) + a.from_x;
  x0 += a.from_x;
#endif

  for (int row = first_row; row < min(first_row + ROWS, a.height); ++row) {
    const int y = row - a.to_y;
    const bool in_picture = y >= 0 && y < a.to_height;
    INTV(V) r = 0, g = 0, b = 0;
    if (in_picture) {
#if TURNED
      const int last_x = a.from_x + a.from_width - 1, last_y = a.from_y + a.from_height - 1;
      const FLOATV(V) at_x = clamp(as_floats(x) * a.turn[0] + (float)y * a.turn[1] + a.turn[2],
                                   (float)a.from_x, (float)last_x);
      const FLOATV(V) at_y = clamp(as_floats(x) * a.turn[3] + (float)y * a.turn[4] + a.turn[5],
                                   (float)a.from_y, (float)last_y);
      const INTV(V) x0 = as_ints(floor(at_x)), y0 = as_ints(floor(at_y));
      const INTV(V) x1 = min(x0 + 1, last_x), y1 = min(y0 + 1, last_y);
      const INTV(V) wx1 = as_ints((at_x - as_floats(x0)) * 2048.0f), wx0 = 2048 - wx1;
      const INTV(V) wy1 = as_ints((at_y - as_floats(y0)) * 2048.0f), wy0 = 2048 - wy1;
#else
      const int n = max((2 * y + 1) * a.from_height - a.to_height, 0);
      int y0 = n / (2 * a.to_height);
      float part = (float)(n - y0 * (2 * a.to_height)) / (float)(2 * a.to_height);
      part = ((float)y0 + part) - (float)y0;
      const int wy0 = convert_int_rte((1.0f - part) * 2048.0f);
      const int wy1 = convert_int_rte(part * 2048.0f);
      const int y1 = min(y0 + 1, a.from_height - 1) + a.from_y;
      y0 += a.from_y;
#endif
      INTV(V) ra, ga, ba, rb, gb, bb;
      FN(pixels)(PLANE_NAMES, &a, y0, x0, &ra, &ga, &ba);
      FN(pixels)(PLANE_NAMES, &a, y0, x1, &rb, &gb, &bb);
      const INTV(V) rt = ra * wx0 + rb * wx1, gt = ga * wx0 + gb * wx1, bt = ba * wx0 + bb * wx1;
      FN(pixels)(PLANE_NAMES, &a, y1, x0, &ra, &ga, &ba);
      FN(pixels)(PLANE_NAMES, &a, y1, x1, &rb, &gb, &bb);
      r = BLEND(rt, ra * wx0 + rb * wx1, wy0, wy1);
      g = BLEND(gt, ga * wx0 + gb * wx1, wy0, wy1);
      b = BLEND(bt, ba * wx0 + bb * wx1, wy0, wy1);
    }
    const int end = min(V, a.width - column);
    // Lanes from begin to stop - 1 are inside the picture, the others in the border.
    const int begin = in_picture ? clamp(a.to_x - column, 0, end) : end;
    const int stop = in_picture ? clamp(a.to_x + a.to_width - column, begin, end) : end;
    __global OUT_T* o = AT(out) + a.out_offset + row * a.stride_y + column * a.stride_x;
    for (int c = 0; c < a.channels; ++c) {
      const FLOATV(V) value =
          CAT(STORED_, OUT_T)(as_floats(r) * a.weight[3 * c] + as_floats(g) * a.weight[3 * c + 1] +
                              as_floats(b) * a.weight[3 * c + 2] + a.bias[c]);
      const float border = CAT(STORED_, OUT_T)(a.pad[c]);
      __global OUT_T* p = o + c * a.stride_c;
#if V == 1
      STOREV(OUT_T, 1, begin < stop ? value : border, p);
#else
      if (begin == 0 && stop == V && a.stride_x == 1) {
        STOREV(OUT_T, V, value, p);
      } else {
        float lanes[V];
        STOREV_PRIVATE(V, value, lanes);
        for (int i = 0; i < end; ++i)
          STOREV(OUT_T, 1, (i >= begin && i < stop) ? lanes[i] : border, p + i * a.stride_x);
      }
#endif
    }
  }
}
