// The values that TopK orders. Expects T, INTEGER and LARGEST, which topk.cl explains. BEFORE(a, b): whether a
// comes before b; NaN comes last.
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
