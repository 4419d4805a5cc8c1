// Code that all kernels of attention share: arguments, the operands of one head, and the bias and
// mask of scores.
//   BIAS   1: numbers of the type BIAS_T are added to the scores
//   MASK   1: where a byte is 0, the score is a.masked
//   T      storage type of query, key, value and output
typedef struct {
#include "kernels/attention/attention_args.cl"
} FN(Args);

#if BIAS
#define BIAS_PARAM IN(BIAS_T, bias),
#else
#define BIAS_PARAM
#endif
#if MASK
#define MASK_PARAM IN(uchar, mask),
#else
#define MASK_PARAM
#endif

// The lowest score. Exponentials of values that are not finite are left to the formula: a row whose
// scores are all -INFINITY gives 0 / 0. Any other score is larger than this.
#define LEAST -3.402823466e+38f

// Declares the matrices of the head with number `number`.
#define AT_HEAD(name, p) (AT(name) + i0 * a.p##0 + i1 * a.p##1 + i2 * a.p##2 + i3 * a.p##3)
#define DECLARE_HEAD(number)                           \
  int rest = number;                                   \
  const int i3 = rest % a.size3;                       \
  rest /= a.size3;                                     \
  const int i2 = rest % a.size2;                       \
  rest /= a.size2;                                     \
  const int i1 = rest % a.size1, i0 = rest / a.size1;  \
  __global const T* const queries = AT_HEAD(query, q); \
  __global const T* const keys = AT_HEAD(key, k);      \
  __global const T* const values = AT_HEAD(value, v);  \
  __global T* const results = AT_HEAD(out, o);         \
  DECLARE_BIAS DECLARE_MASK
#if BIAS
#define DECLARE_BIAS __global const BIAS_T* const biases = AT_HEAD(bias, b);
#else
#define DECLARE_BIAS
#endif
#if MASK
#define DECLARE_MASK __global const uchar* const masks = AT_HEAD(mask, m);
#else
#define DECLARE_MASK
#endif

// Returns a score with its bias and mask; both places must exist.
#if BIAS
#define BIASED(score, row, at) ((score) + LOADV(BIAS_T, 1, biases + (row)*a.b_row + (at)*a.b_key))
#else
#define BIASED(score, row, at) (score)
#endif
#if MASK
#define MASKED(score, row, at) (masks[(row)*a.m_row + (at)*a.m_key] ? (score) : a.masked)
#else
#define MASKED(score, row, at) (score)
#endif
