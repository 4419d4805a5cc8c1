// Code shared by the kernels that pool windows. Defines: those of pooling.cl.

// Return the first tap, and the one past the last tap, of a window from `start` on that lie before
// position `size`.
int FN(first)(int start, int step, int taps) {
  return start < 0 ? min((step - 1 - start) / step, taps) : 0;
}
int FN(last)(int start, int step, int taps, int size) {
  return start < size ? min(taps, (size - start + step - 1) / step) : 0;
}

#ifdef LEVEL
// The maximum of bytes is a byte, and has no tail: a conversion of each byte to a float would take
// longer than the comparison.
#if VECTOR == 1
#define ACC LEVEL
#define READ(p) (LEVEL)(*(p))
#define SAVE_RESULT(acc, n, y, x, c, p) (*(p) = (acc))
#else
#if ALIGNED
#define LOAD_BYTES(p) (*(__global const CAT(uchar, VECTOR)*)(p))
#define SAVE_BYTES(v, p) (*(__global CAT(uchar, VECTOR)*)(p) = (v))
#else
#define LOAD_BYTES(p) CAT(load, VECTOR)(p)
#define SAVE_BYTES(v, p) CAT(store, VECTOR)(v, p)
#endif
#define ACC CAT(LEVEL, VECTOR)
#define READ(p) CAT(CAT(convert_, LEVEL), VECTOR)(LOAD_BYTES(p))
#define SAVE_RESULT(acc, n, y, x, c, p) SAVE_BYTES(CAT(convert_uchar, VECTOR)(acc), p)
#endif
#define START 0
#define ACCUMULATE(acc, v) acc = max(acc, v)
#else
#define ACC FLOATV(VECTOR)
#define READ(p) LOAD(T, VECTOR, p)
#define SAVE_RESULT(acc, n, y, x, c, p) SAVE(OUT_T, VECTOR, TAIL(acc, n, y, x, c, VECTOR), p)
#if MODE == 0
#define START -INFINITY
#define ACCUMULATE(acc, v) acc = larger(acc, v)
#else
#define START 0.0f
#define ACCUMULATE(acc, v) acc += v
#endif
#endif
