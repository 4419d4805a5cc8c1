// The values that TopK orders. Expects T, INTEGER and LARGEST, which topk.cl explains. BEFORE(a, b): whether a
// comes before b; NaN comes last. number(): an unsigned number, smaller for values that come before. FIND_ROW: turns
// the number of a row, `rest`, into its first places in the input and in both outputs; `rest` is above 0 past the last row.
#if INTEGER
#define VALUE int
#define LOAD_VALUE(p) (*(p))
#define STORE_VALUE(v, p) (*(p) = (v))
#define BEFORE(a, b) (LARGEST ? (a) > (b) : (a) < (b))
#else
#define VALUE float
#define LOAD_VALUE(p) LOADV(T, 1, p)
#define STORE_VALUE(v, p) STOREV(T, 1, v, p)
#define BEFORE(a, b) ((LARGEST ? (a) > (b) : (a) < (b)) || (isnan(b) && !isnan(a)))
#endif

#define FIND_ROW                                     \
  int from = 0, to = 0, at = 0;                      \
  _Pragma("unroll") for (int d = 0; d < DIMS; ++d) { \
    const int i = rest % r.size[d];                  \
    rest /= r.size[d];                               \
    from += i * r.from[d];                           \
    to += i * r.to[d];                               \
    at += i * r.at[d];                               \
  }

#define LAST 0xffffffffu  // the number of NaN, and of places behind a row

inline uint FN(number)(VALUE value) {
#if INTEGER
  const uint rising = as_uint(value) ^ 0x80000000u;
#else
  if (isnan(value)) return LAST;
  const uint bits = as_uint(value + 0.0f);  // there is one zero
  const uint rising = bits ^ (bits >> 31 ? LAST : 0x80000000u);
#endif
  return LARGEST ? ~rising : rising;
}
