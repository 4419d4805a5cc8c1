// Attention on any device: a work-group computes ROWS queries of a head, meeting BLOCK keys at a time.
// Queries, keys and scores lie in local memory with the number of the query or key innermost, so that a
// work-item reads vectors of four: it computes SCORES_M x SCORES_N scores of a block, then their
// exponentials, and TILES tiles of 4 queries x 4 channels of the result. Defines besides those of
// attention_operands.cl:
//   SIZE, VALUE_SIZE     channels of a head
//   ROWS, BLOCK          multiples of 4
//   SCORES_M, SCORES_N   1, 2 or 4; queries x keys
//   ITEMS                work-items: ROWS / SCORES_M * BLOCK / SCORES_N, a multiple of ROWS / 4
//   TILES                of each of them, 1 to 3
//   CAUSAL               query i sees the keys up to i
#include "kernels/attention/attention_operands.cl"

#define DEPTH ((SIZE + 3) / 4 * 4)
#define CHANNELS ((VALUE_SIZE + 3) / 4 * 4)
#define GROUPS (ROWS / 4)  // groups of four queries
#define LINE (ROWS + 4)    // numbers in a line of queries or scores
#define KEY_LINE (BLOCK + 4)
#define KEY_FLOATS (DEPTH * KEY_LINE)
#define VALUE_FLOATS (BLOCK * CHANNELS)
#define BLOCK_FLOATS (KEY_FLOATS > VALUE_FLOATS ? KEY_FLOATS : VALUE_FLOATS)

#if SCORES_M == 4
#define LOAD_M(p) *(__local const float4*)(p)
#elif SCORES_M == 2
#define LOAD_M(p) *(__local const float2*)(p)
#else
#define LOAD_M(p) *(p)
#endif
#if SCORES_N == 4
#define LOAD_N(p) *(__local const float4*)(p)
#elif SCORES_N == 2
#define LOAD_N(p) *(__local const float2*)(p)
#else
#define LOAD_N(p) *(p)
#endif

WORK_GROUP(ITEMS, 1, 1)
KERNEL(IN(T, query), IN(T, key), IN(T, value), BIAS_PARAM MASK_PARAM OUT(T, out),
       const FN(Args) a) {
  SHARED(float4, memory, (DEPTH * LINE + BLOCK_FLOATS + BLOCK * LINE + 2 * ROWS) / 4);
  __local float *const turned = (__local float*)memory, *const block = turned + DEPTH * LINE,
                       *const scores = block + BLOCK_FLOATS, *const most = scores + BLOCK * LINE,
                       *const change = most + ROWS;
  const int item = get_local_id(0);
  DECLARE_HEAD((int)get_group_id(0) / a.blocks)
  const int first = (int)get_group_id(0) % a.blocks * ROWS;

  for (int e = item; e < ROWS * DEPTH; e += ITEMS) {
    const int i = e / DEPTH, d = e % DEPTH, row = min(first + i, a.queries - 1);
    turned[d * LINE + i] = d < SIZE ? LOADV(T, 1, queries + row * a.q_row + d) * a.scale : 0;
  }
  if (item < ROWS) most[item] = LEAST;

  // Finds the work-item's scores, and its tiles, which all belong to the same four queries.
  const int m0 = item % (ROWS / SCORES_M) * SCORES_M, n0 = item / (ROWS / SCORES_M) * SCORES_N;
  const int own = item % GROUPS * 4, own_channel = item / GROUPS * 4;
#define STEP (ITEMS / GROUPS * 4)  // channels from one tile to the next
  float4 total = 0;
#define CLEAR_SUM(t) float4 sum##t##_0 = 0, sum##t##_1 = 0, sum##t##_2 = 0, sum##t##_3 = 0;
  REPEAT(TILES, CLEAR_SUM)

#if CAUSAL
  const int end = min(a.keys, first + ROWS);
#else
  const int end = a.keys;
#endif
  for (int begin = 0; begin < end; begin += BLOCK) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < BLOCK * DEPTH; e += ITEMS) {
      const int j = e / DEPTH, d = e % DEPTH, at = min(begin + j, end - 1);
      block[d * KEY_LINE + j] = d < SIZE ? LOADV(T, 1, keys + at * a.k_row + d) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define CLEAR_SCORE(m) FLOATV(SCORES_N) score##m = 0;
    REPEAT(SCORES_M, CLEAR_SCORE)
    for (int d = 0; d < DEPTH; ++d) {
      float x[SCORES_M];
      STOREV_PRIVATE(SCORES_M, LOAD_M(turned + d * LINE + m0), x);
      const FLOATV(SCORES_N) y = LOAD_N(block + d * KEY_LINE + n0);
#define ADD_SCORE(m) score##m = fma((FLOATV(SCORES_N))(x[m]), y, score##m);
      REPEAT(SCORES_M, ADD_SCORE)
    }
    float own_scores[SCORES_M * SCORES_N];
#define KEEP_SCORE(m) STOREV_PRIVATE(SCORES_N, score##m, own_scores + m * SCORES_N);
    REPEAT(SCORES_M, KEEP_SCORE)
#pragma unroll
    for (int m = 0; m < SCORES_M; ++m) {
#pragma unroll
      for (int n = 0; n < SCORES_N; ++n) {
        const int row = min(first + m0 + m, a.queries - 1), at = begin + n0 + n;
        const int inside = min(at, end - 1);
        float score = own_scores[m * SCORES_N + n];
        score = BIASED(score, row, inside);
        score = MASKED(score, row, inside);
        score = at >= end || (CAUSAL && at > first + m0 + m) ? -INFINITY : score;
        own_scores[m * SCORES_N + n] = score;
        scores[(n0 + n) * LINE + m0 + m] = score;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < ROWS) {
      float largest = most[item];
      const float before = largest;
      for (int j = 0; j < BLOCK; ++j) largest = fmax(largest, scores[j * LINE + item]);
      most[item] = largest;
      change[item] = exp(before - largest);
    }
    // All keys were read before the barrier above, so values can replace them.
    for (int e = item; e < BLOCK * CHANNELS; e += ITEMS) {
      const int j = e / CHANNELS, d = e % CHANNELS, at = min(begin + j, end - 1);
      block[e] = d < VALUE_SIZE ? LOADV(T, 1, values + at * a.v_row + d) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int m = 0; m < SCORES_M; ++m) {
#pragma unroll
      for (int n = 0; n < SCORES_N; ++n)
        scores[(n0 + n) * LINE + m0 + m] = exp(own_scores[m * SCORES_N + n] - most[m0 + m]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float4 changes = *(__local const float4*)(change + own);
    total *= changes;
#define RESCALE(t)                                                              \
  sum##t##_0 *= changes.s0, sum##t##_1 *= changes.s1, sum##t##_2 *= changes.s2, \
      sum##t##_3 *= changes.s3;
    REPEAT(TILES, RESCALE)
    for (int j = 0; j < BLOCK; ++j) {
      const float4 weight = *(__local const float4*)(scores + j * LINE + own);
      total += weight;
// Adds to a tile. One past the last channel repeats the last one, and is not stored.
#define ADD_TILE(t)                                                                       \
  {                                                                                       \
    const float4 y = *(__local const float4*)(block + j * CHANNELS +                      \
                                              min(own_channel + t * STEP, CHANNELS - 4)); \
    sum##t##_0 = fma((float4)(weight.s0), y, sum##t##_0);                                 \
    sum##t##_1 = fma((float4)(weight.s1), y, sum##t##_1);                                 \
    sum##t##_2 = fma((float4)(weight.s2), y, sum##t##_2);                                 \
    sum##t##_3 = fma((float4)(weight.s3), y, sum##t##_3);                                 \
  }
      REPEAT(TILES, ADD_TILE)
    }
  }
#define SAVE_ROW(t, i, part)                                                               \
  if (first + own + i < a.queries) {                                                       \
    const float4 v = sum##t##_##i / total.part;                                            \
    __global T* const to = results + (first + own + i) * a.o_row + own_channel + t * STEP; \
    const int left = VALUE_SIZE - (own_channel + t * STEP);                                \
    if (left > 0) STOREV(T, 1, v.s0, to);                                                  \
    if (left > 1) STOREV(T, 1, v.s1, to + 1);                                              \
    if (left > 2) STOREV(T, 1, v.s2, to + 2);                                              \
    if (left > 3) STOREV(T, 1, v.s3, to + 3);                                              \
  }
#define SAVE(t) SAVE_ROW(t, 0, s0) SAVE_ROW(t, 1, s1) SAVE_ROW(t, 2, s2) SAVE_ROW(t, 3, s3)
  REPEAT(TILES, SAVE)
}
