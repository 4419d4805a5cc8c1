// Attention on CPUs, with vectors along the queries: a work-item computes `rows` queries of a head (at
// most ROWS), meeting BLOCK keys at a time. Its queries lie turned, [size][query], so that a number of a
// key or value meets a vector of queries; maxima, exponentials and sums then need no exchange within a
// vector. A block and its queries stay in the cache. Defines besides those of attention_operands.cl:
//   SIZE, VALUE_SIZE   channels of a head
//   VECTOR             queries of a vector
//   TILE_M, TILE_N     sums at once: keys or channels x vectors
//   BLOCK, ROWS        multiples of TILE_M and of TILE_N * VECTOR
//   CAUSAL             query i sees the keys up to i
//   TURNED             the bias has the queries adjacent, padded to a multiple of ROWS
#include "kernels/attention/attention_operands.cl"

#define FV FLOATV(VECTOR)
#define COLUMNS (TILE_N * VECTOR)
#define CHANNELS ((VALUE_SIZE + TILE_M - 1) / TILE_M * TILE_M)

// Adds the products x[m * STRIDE] * y[n] to acc, for rows m and vectors n.
#define LOAD_(p, n) const FV y##n = LOADV_PRIVATE(VECTOR, y + n * VECTOR);
#define FMA_(m, n) acc##m##_##n = fma(x##m, y##n, acc##m##_##n);
#define CLEAR_(m, n) FV acc##m##_##n = 0;
#define CLEAR(m) REPEAT_WITH(TILE_N, m, CLEAR_)
#define STORE_(m, n) STOREV_PRIVATE(VECTOR, acc##m##_##n, to + m * ROWS + n * VECTOR);
#define STORE(m) REPEAT_WITH(TILE_N, m, STORE_)

WORK_GROUP(1, 1, 1)
KERNEL(IN(T, query), IN(T, key), IN(T, value), BIAS_PARAM MASK_PARAM OUT(T, out),
       const FN(Args) a) {
  DECLARE_HEAD((int)get_group_id(0) / a.blocks)
  const int first = (int)get_group_id(0) % a.blocks * a.rows;
  const int count = min(a.rows, a.queries - first);

  float turned[SIZE * ROWS], block_keys[BLOCK * SIZE], block_values[BLOCK * CHANNELS];
  float scores[BLOCK * ROWS], sums[CHANNELS * ROWS], most[ROWS], total[ROWS];
  for (int i = 0; i < ROWS; ++i) {
    __global const T* const from = queries + min(first + i, a.queries - 1) * a.q_row;
    for (int d = 0; d < SIZE; ++d) turned[d * ROWS + i] = LOADV(T, 1, from + d) * a.scale;
    most[i] = LEAST, total[i] = 0;
  }
  for (int i = 0; i < CHANNELS * ROWS; ++i) sums[i] = 0;

#if CAUSAL
  const int end = min(a.keys, first + count);
#else
  const int end = a.keys;
#endif
  for (int begin = 0; begin < end; begin += BLOCK) {
    const int left = min(BLOCK, end - begin);
    for (int j = 0; j < BLOCK; ++j) {
      const int at = min(begin + j, end - 1);
      for (int d = 0; d < SIZE; ++d)
        block_keys[j * SIZE + d] = LOADV(T, 1, keys + at * a.k_row + d);
      for (int d = 0; d < VALUE_SIZE; ++d)
        block_values[j * CHANNELS + d] = LOADV(T, 1, values + at * a.v_row + d);
      for (int d = VALUE_SIZE; d < CHANNELS; ++d) block_values[j * CHANNELS + d] = 0;
    }
    for (int c = 0; c < count; c += COLUMNS) {
      for (int j = 0; j < left; j += TILE_M) {
        const float *x = block_keys + j * SIZE, *y = turned + c;
        REPEAT(TILE_M, CLEAR)
        for (int d = 0; d < SIZE; ++d, ++x, y += ROWS) {
          REPEAT_WITH(TILE_N, 0, LOAD_)
#define MULTIPLY(m)                    \
  {                                    \
    const FV x##m = (FV)(x[m * SIZE]); \
    REPEAT_WITH(TILE_N, m, FMA_)       \
  }
          REPEAT(TILE_M, MULTIPLY)
#undef MULTIPLY
        }
        float* const to = scores + j * ROWS + c;
        REPEAT(TILE_M, STORE)
      }

      for (int v = c; v < c + COLUMNS; v += VECTOR) {
        FV largest = LOADV_PRIVATE(VECTOR, most + v);
        const FV before = largest;
        for (int j = 0; j < left; ++j) {
          FV score = LOADV_PRIVATE(VECTOR, scores + j * ROWS + v);
#if BIAS && TURNED && !MASK
          score += LOADV(BIAS_T, VECTOR, biases + (begin + j) * a.b_key + (first + v) * a.b_row);
#elif BIAS || MASK
          float each[VECTOR];
          STOREV_PRIVATE(VECTOR, score, each);
          for (int i = 0; i < VECTOR; ++i) {
            const int row = min(first + v + i, a.queries - 1);
            each[i] = BIASED(each[i], row, begin + j);
            each[i] = MASKED(each[i], row, begin + j);
          }
          score = LOADV_PRIVATE(VECTOR, each);
#endif
#if CAUSAL
          score = select(score, (FV)(-INFINITY),
                         (INTV(VECTOR))(begin + j) > (INTV(VECTOR))(first + v) + COUNTED(VECTOR));
#endif
#if BIAS || MASK || CAUSAL
          STOREV_PRIVATE(VECTOR, score, scores + j * ROWS + v);
#endif
          largest = fmax(largest, score);
        }
        const FV change = gate_weight(before - largest);
        FV sum = LOADV_PRIVATE(VECTOR, total + v) * change;
        for (int j = 0; j < left; ++j) {
          const FV weight = gate_weight(LOADV_PRIVATE(VECTOR, scores + j * ROWS + v) - largest);
          STOREV_PRIVATE(VECTOR, weight, scores + j * ROWS + v);
          sum += weight;
        }
        STOREV_PRIVATE(VECTOR, sum, total + v);
        STOREV_PRIVATE(VECTOR, largest, most + v);
        for (int d = 0; d < CHANNELS; ++d) {
          float* const at = sums + d * ROWS + v;
          STOREV_PRIVATE(VECTOR, LOADV_PRIVATE(VECTOR, at) * change, at);
        }
      }

      for (int d = 0; d < CHANNELS; d += TILE_M) {
        float* const to = sums + d * ROWS + c;
        const float *x = block_values + d, *y = scores + c;
#define TAKE_(m, n) FV acc##m##_##n = LOADV_PRIVATE(VECTOR, to + m * ROWS + n * VECTOR);
#define TAKE(m) REPEAT_WITH(TILE_N, m, TAKE_)
        REPEAT(TILE_M, TAKE)
        for (int j = 0; j < left; ++j, x += CHANNELS, y += ROWS) {
          REPEAT_WITH(TILE_N, 0, LOAD_)
#define MULTIPLY(m)              \
  {                              \
    const FV x##m = (FV)(x[m]);  \
    REPEAT_WITH(TILE_N, m, FMA_) \
  }
          REPEAT(TILE_M, MULTIPLY)
#undef MULTIPLY
        }
        REPEAT(TILE_M, STORE)
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    const float scale = 1 / total[i];
    __global T* const to = results + (first + i) * a.o_row;
    for (int d = 0; d < VALUE_SIZE; ++d) STOREV(T, 1, sums[d * ROWS + i] * scale, to + d);
  }
}
