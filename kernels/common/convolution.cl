// Stores the first `left` elements of a vector of V floats, without an index: Intel's compiler
// keeps an array that is indexed by a variable in memory, and does not unroll a loop with a
// variable limit.
#if defined(ON_CPU) || defined(__NV_CL_C_VERSION)
#define EACH_FIRST(i, V, left) for (int i = 0; i < (left); ++i)
#else
#define EACH_FIRST(i, V, left) \
  for (int i = 0; i < V; ++i)  \
    if (i < (left))
#endif
#define STORE_FIRST(type, V, v, to, left)                          \
  if ((left) >= V) {                                               \
    STOREV(type, V, v, to);                                        \
  } else {                                                         \
    float part[V];                                                 \
    STOREV_PRIVATE(V, v, part);                                    \
    EACH_FIRST(i, V, left) { STOREV(type, 1, part[i], (to) + i); } \
  }
