// Computes a grid of values from each region of a feature map. A work-item computes one element of
// the output. Regions may have any values, in f32. Defines:
//   T, ET  storage type; type of the third input
//   KIND   0 maximum of each bin; 1 bilinear at its position; 2 and 3 position-sensitive: average
//          and bilinear; 4 position-sensitive with offsets; 5 bilinear samples
//   EXTRA  there is a third input: offsets of kind 4, image numbers of kind 5
//   LOCAL  work-group

typedef struct {
#include "kernels/detection/roi_pooling_args.cl"
} FN(Args);

int FN(index)(float v) { return isnan(v) ? -100000000 : (int)clamp(v, -1e8f, 1e8f); }

#define PIXEL(y, x) LOADV(T, 1, plane + (y)*a->in_h + (x)*a->in_w)

float FN(between)(__global const T* plane, const FN(Args) * a, float y, float x) {
  const int top = (int)floor(y), left = (int)floor(x);
  const int bottom = min((int)ceil(y), a->height - 1), right = min((int)ceil(x), a->width - 1);
  const float dy = y - top, dx = x - left;
  const float above = PIXEL(top, left) + (PIXEL(top, right) - PIXEL(top, left)) * dx;
  const float below = PIXEL(bottom, left) + (PIXEL(bottom, right) - PIXEL(bottom, left)) * dx;
  return above + (below - above) * dy;
}

bool FN(contains)(const FN(Args) * a, float y, float x) {
  return y >= 0 && x >= 0 && y <= a->height - 1 && x <= a->width - 1;
}

float FN(sample_at)(int i, int n, float begin, float end, int size) {
  const float last = size - 1;
  return n == 1 ? 0.5f * (begin + end) * last : i * ((end - begin) * last / (n - 1)) + begin * last;
}

// Returns the pixels of bin i of `bins` equal parts of `size` pixels, rounded outwards.
int2 FN(bin)(int i, int bins, int start, int size, int limit) {
  const long begin = (long)i * size / bins + start;
  const long end = ((long)(i + 1) * size + bins - 1) / bins + start;
  return (int2)((int)clamp(begin, 0L, (long)limit), (int)clamp(end, 0L, (long)limit));
}

float FN(largest)(__global const T* plane, const FN(Args) * a, int2 rows, int2 columns) {
  float largest = rows.x < rows.y && columns.x < columns.y ? PIXEL(rows.x, columns.x) : 0.0f;
  for (int y = rows.x; y < rows.y; ++y)
    for (int x = columns.x; x < columns.y; ++x) largest = fmax(largest, PIXEL(y, x));
  return largest;
}

float FN(average)(__global const T* plane, const FN(Args) * a, int2 rows, int2 columns) {
  const int count = max(rows.y - rows.x, 0) * max(columns.y - columns.x, 0);
  float sum = 0;
  for (int y = rows.x; y < rows.y; ++y)
    for (int x = columns.x; x < columns.y; ++x) sum += PIXEL(y, x);
  return count ? sum / count : 0.0f;
}

// Returns one weighted sample of kind 5.
float FN(sample)(__global const T* plane, const FN(Args) * a, float y, float x) {
  if (!(y >= -1 && x >= -1 && y <= a->height && x <= a->width)) return 0;
  y = fmax(y, 0.0f), x = fmax(x, 0.0f);
  const int top = min((int)y, a->height - 1), left = min((int)x, a->width - 1);
  const int bottom = min(top + 1, a->height - 1), right = min(left + 1, a->width - 1);
  const float dy = top == a->height - 1 ? 0 : y - top, dx = left == a->width - 1 ? 0 : x - left;
  return (1 - dy) * ((1 - dx) * PIXEL(top, left) + dx * PIXEL(top, right)) +
         dy * ((1 - dx) * PIXEL(bottom, left) + dx * PIXEL(bottom, right));
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, in), IN(float, regions),
#if EXTRA
       IN(ET, extra),
#endif
       OUT(T, out), const FN(Args) args) {
  const FN(Args) geometry = args;
  const FN(Args)* const a = &geometry;
  int rest = get_global_id(0);
  if (rest >= a->items) return;
  const int c = rest % a->channels;
  rest /= a->channels;
  const int x = rest % a->columns;
  rest /= a->columns;
  const int y = rest % a->rows, n = rest / a->rows;
  __global const float* const region = AT(regions) + n * a->roi_n;
#define REGION(i) region[(i)*a->roi_i]
#if KIND == 5
  const int image = (int)AT(extra)[n * a->extra_n];
#else
  const int image = FN(index)(REGION(0));
#endif
  bool there = image >= 0 && image < a->images;
#if KIND < 2
  for (int i = 0; i <= n; ++i)  // a region of image -1 ends the list
    there = there && AT(regions)[i * a->roi_n] != -1;
#endif
  float value = 0;
  if (there) {
    __global const T* plane = AT(in) + image * a->in_n;
#if KIND == 0
    const int left = FN(index)(round(REGION(1) * a->scale)),
              top = FN(index)(round(REGION(2) * a->scale));
    const int width = max(FN(index)(round(REGION(3) * a->scale)) - left + 1, 1);
    const int height = max(FN(index)(round(REGION(4) * a->scale)) - top + 1, 1);
    value = FN(largest)(plane + c * a->in_c, a, FN(bin)(y, a->rows, top, height, a->height),
                        FN(bin)(x, a->columns, left, width, a->width));
#elif KIND == 1
    const float fy = FN(sample_at)(y, a->rows, REGION(2), REGION(4), a->height);
    const float fx = FN(sample_at)(x, a->columns, REGION(1), REGION(3), a->width);
    if (FN(contains)(a, fy, fx)) value = FN(between)(plane + c * a->in_c, a, fy, fx);
#elif KIND == 2
    const float left = round(REGION(1)) * a->scale, top = round(REGION(2)) * a->scale;
    const float width = fmax((round(REGION(3)) + 1.0f) * a->scale - left, 0.1f) / a->group;
    const float height = fmax((round(REGION(4)) + 1.0f) * a->scale - top, 0.1f) / a->group;
    const int2 rows = (int2)(clamp(FN(index)(floor(y * height + top)), 0, a->height),
                             clamp(FN(index)(ceil((y + 1) * height + top)), 0, a->height));
    const int2 columns = (int2)(clamp(FN(index)(floor(x * width + left)), 0, a->width),
                                clamp(FN(index)(ceil((x + 1) * width + left)), 0, a->width));
    value = FN(average)(plane + ((c * a->group + y) * a->group + x) * a->in_c, a, rows, columns);
#elif KIND == 3
    const float left = REGION(1) * a->scale, top = REGION(2) * a->scale;
    const float width = (REGION(3) * a->scale - left) / a->bins_x;
    const float height = (REGION(4) * a->scale - top) / a->bins_y;
    for (int by = 0; by < a->bins_y; ++by)
      for (int bx = 0; bx < a->bins_x; ++bx) {
        const float t = top + by * height, l = left + bx * width;
        const float fy = FN(sample_at)(y, a->group, t, t + height, a->height);
        const float fx = FN(sample_at)(x, a->group, l, l + width, a->width);
        if (FN(contains)(a, fy, fx))
          value +=
              FN(between)(plane + ((by * a->bins_x + bx) * a->channels + c) * a->in_c, a, fy, fx);
      }
    value /= a->bins_x * a->bins_y;
#elif KIND == 4
    const float left = round(REGION(1)) * a->scale - 0.5f, top = round(REGION(2)) * a->scale - 0.5f;
    const float width = fmax((round(REGION(3)) + 1.0f) * a->scale - 0.5f - left, 0.1f);
    const float height = fmax((round(REGION(4)) + 1.0f) * a->scale - 0.5f - top, 0.1f);
    const float bin_width = width / a->group, bin_height = height / a->group;
    float start_x = x * bin_width + left, start_y = y * bin_height + top;
#if EXTRA
    __global const ET* const shift =
        AT(extra) + n * a->extra_n + 2 * (c / a->label_channels) * a->extra_c +
        y * a->part / a->group * a->extra_h + x * a->part / a->group * a->extra_w;
    start_x += LOADV(ET, 1, shift) * a->trans * width;
    start_y += LOADV(ET, 1, shift + a->extra_c) * a->trans * height;
#endif
    plane += ((c * a->group + y) * a->group + x) * a->in_c;
    const float last_x = a->width - 0.5f, last_y = a->height - 0.5f;
    int met = 0;
    for (int by = 0; by < a->bins_y; ++by)
      for (int bx = 0; bx < a->bins_x; ++bx) {
        const float fx = start_x + bx * bin_width / a->bins_x,
                    fy = start_y + by * bin_height / a->bins_y;
        if (!(fx >= -0.5f && fx <= last_x && fy >= -0.5f && fy <= last_y)) continue;
        value +=
            FN(between)(plane, a, clamp(fy, 0.0f, last_y - 0.5f), clamp(fx, 0.0f, last_x - 0.5f));
        ++met;
      }
    if (met) value /= met;
#else
    const float left = (REGION(0) + a->before) * a->scale + a->after;
    const float top = (REGION(1) + a->before) * a->scale + a->after;
    const float width =
        fmax((REGION(2) + a->before) * a->scale + a->after - left, a->least) / a->columns;
    const float height =
        fmax((REGION(3) + a->before) * a->scale + a->after - top, a->least) / a->rows;
    const int rows = a->samples ? a->samples : clamp(FN(index)(ceil(height)), 0, 4 * a->height);
    const int columns = a->samples ? a->samples : clamp(FN(index)(ceil(width)), 0, 4 * a->width);
    for (int sy = 0; sy < rows; ++sy)
      for (int sx = 0; sx < columns; ++sx) {
        const float fy = top + y * height + (sy + 0.5f) * (height / rows);
        const float fx = left + x * width + (sx + 0.5f) * (width / columns);
        const float sampled = FN(sample)(plane + c * a->in_c, a, fy, fx);
        value = a->average ? value + sampled / (rows * columns) : fmax(value, sampled);
      }
#endif
  }
  STOREV(T, 1, value, AT(out) + n * a->out_n + c * a->out_c + y * a->out_h + x * a->out_w);
}
