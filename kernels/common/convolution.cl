// Stores the first `left` elements of a vector of V floats.
#define STORE_FIRST(type, V, v, to, left)                              \
  if ((left) >= V) {                                                   \
    STOREV(type, V, v, to);                                            \
  } else {                                                             \
    float part[V];                                                     \
    STOREV_PRIVATE(V, v, part);                                        \
    for (int i = 0; i < left; ++i) STOREV(type, 1, part[i], (to) + i); \
  }
