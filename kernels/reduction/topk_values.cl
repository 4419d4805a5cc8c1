// The values that TopK orders. Expects T, INTEGER and LARGEST, which topk.cl explains. BEFORE(a, b): whether a
// comes before b; NaN comes last. number(): an unsigned number, smaller for values that come before.
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
