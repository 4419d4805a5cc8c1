// Code shared by the kernels that pool windows. MODE is as in pooling.cl.

// Return the first tap, and the one past the last tap, of a window from `start` on that lie before
// position `size`.
int FN(first)(int start, int step, int taps) {
  return start < 0 ? min((step - 1 - start) / step, taps) : 0;
}
int FN(last)(int start, int step, int taps, int size) {
  return start < size ? min(taps, (size - start + step - 1) / step) : 0;
}

#if MODE == 0
#define START -INFINITY
#define ACCUMULATE(acc, v) acc = larger(acc, v)
#else
#define START 0.0f
#define ACCUMULATE(acc, v) acc += v
#endif
