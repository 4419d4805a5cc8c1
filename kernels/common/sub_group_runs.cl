// RUN(n, LOAD, LOAD_END) adds the products of a run of n elements, or of this slice of it, with
// their weights, from w on. The last slice takes the elements that do not fill a block. A kernel by
// sub-groups defines STRIDE, the elements of a step, WEIGHTS(n), the distance of their weights, and
// STEP_WHOLE(LOAD) and STEP(LOAD, n) for a step and for the REST elements at the end of a run.
#if BLOCKS_2D
#define WHOLE(n) (((n) + STRIDE - 1) / STRIDE * STRIDE)
#else
#define WHOLE(n) ((n) / STRIDE * STRIDE)
#endif
#define PADDED(n) WEIGHTS(WHOLE(n) + REST)
#if SLICES > 1
#define PART_OF_SLICE(n) ((WHOLE(n) / STRIDE + SLICES - 1) / SLICES * STRIDE)
#define FROM(n) min(slice* PART_OF_SLICE(n), WHOLE(n))
#define TO(n) min((slice + 1) * PART_OF_SLICE(n), WHOLE(n))
#define HAS_REST (slice == SLICES - 1)
#else
#define FROM(n) 0
#define TO(n) WHOLE(n)
#define HAS_REST 1
#endif
#if REST > 0
#define REST_OF_RUN(LOAD) \
  if (HAS_REST) STEP(LOAD, REST)
#else
#define REST_OF_RUN(LOAD)
#endif
#define RUN(n, LOAD, LOAD_END)                   \
  {                                              \
    const int elements = n, to = TO(elements);   \
    int i = FROM(elements);                      \
    const int next = w + PADDED(elements);       \
    w += WEIGHTS(i);                             \
    for (; i < to; i += STRIDE) STEP_WHOLE(LOAD) \
    REST_OF_RUN(LOAD_END)                        \
    w = next;                                    \
  }
