// Sorts lists of boxes by score, with a work-group of LOCAL work-items (a multiple of 32). A list
// consists of keys in global memory, larger keys first: a larger key has a higher score or, with an
// equal score, a smaller index. Key 0 is no box. PART: keys that are sorted at a time in local
// memory.

#define BINS (4 * LOCAL)

// Local memory that successive parts of the work share.
typedef union {
  ulong part[PART];  // used by SORT
  struct {           // used by SELECT
    int bins[BINS];
    int sums[2 * LOCAL];
    ulong taken[2][SHORT ? SHORT : 1];  // used by TAKE_SORTED: by bin, and sorted
  } bounds;
  struct {  // used by suppress.cl
    float4 boxes[LOCAL];
    ulong keys[LOCAL];
    float needs[LOCAL];
    uint bits[LOCAL * (LOCAL / 32 + 1) / 2];
    uint kept[LOCAL / 32], beaten[LOCAL / 32];
    int open[2];
  } near;
} FN(Space);

// The state of a list, in local memory. WORDS: number of ints for the including source.
typedef struct {
  FN(Space) space;
  int count;
  int bin, above,
      // Results of SELECT: the bin in which the bound lies, the number of keys in better bins, and
      // the number including that bin.
      chosen;
  int words[WORDS];
} FN(List);

ulong FN(key)(float score, int index) {
  const uint bits = score == 0 ? 0 : as_uint(score);  // makes -0 equal to 0
  return (ulong)(bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u)) << 32 | ~(uint)index;
}
float FN(score)(ulong key) {
  const uint bits = (uint)(key >> 32);
  return as_float(bits ^ (bits >> 31 ? 0x80000000u : 0xffffffffu));
}
int FN(index)(ulong key) { return (int)~(uint)key; }
// Returns a key that orders two integers, smaller ones first.
ulong FN(rank)(int first, int second) { return (ulong) ~(uint)first << 32 | ~(uint)second; }

// Returns for how many keys memory is needed to sort `count` keys: a power of two.
int FN(room)(int count) { return count < 2 ? 2 : 1 << (32 - clz(count - 1)); }

// Does one step of a bitonic sort, on `length` keys from number `first` of the list on.
#define EXCHANGE(keys, length, first, size, stride)                  \
  for (int p = (int)get_local_id(0); p < (length) / 2; p += LOCAL) { \
    const int i = 2 * p - (p & ((stride)-1)), j = i + (stride);      \
    const ulong a = (keys)[i], b = (keys)[j];                        \
    const bool swap = (a < b) == ((((first) + i) & (size)) == 0);    \
    (keys)[i] = swap ? b : a;                                        \
    (keys)[j] = swap ? a : b;                                        \
  }

// Sorts a list of `count` keys, with FN(room)(count) keys of memory. Sorts parts first; then
// compares keys that are closer than the length of a part within parts, in local memory. Its loops
// run at least once, because PoCL duplicates all code after a loop with barriers that might not
// run.
#define SORT(keys, count)                                                                    \
  {                                                                                          \
    const int item = (int)get_local_id(0), room = FN(room)(count), length = min(room, PART); \
    for (int i = count + item; i < room; i += LOCAL) (keys)[i] = 0;                          \
    barrier(CLK_GLOBAL_MEM_FENCE);                                                           \
    int most = length;                                                                       \
    do {                                                                                     \
      int stride = most / 2;                                                                 \
      do {                                                                                   \
        if (stride >= length) {                                                              \
          EXCHANGE((keys), room, 0, most, stride)                                            \
        }                                                                                    \
        barrier(CLK_GLOBAL_MEM_FENCE);                                                       \
        stride /= 2;                                                                         \
      } while (stride >= length);                                                            \
      int first = 0;                                                                         \
      do {                                                                                   \
        for (int i = item; i < length; i += LOCAL) list->space.part[i] = (keys)[first + i];  \
        barrier(CLK_LOCAL_MEM_FENCE);                                                        \
        int size = most == length ? 2 : most;                                                \
        stride = min(size, length) / 2;                                                      \
        do {                                                                                 \
          EXCHANGE(list->space.part, length, first, size, stride)                            \
          barrier(CLK_LOCAL_MEM_FENCE);                                                      \
          stride /= 2;                                                                       \
          size = stride ? size : 2 * size;                                                   \
          stride = stride ? stride : size / 2;                                               \
        } while (size <= most);                                                              \
        for (int i = item; i < length; i += LOCAL) (keys)[first + i] = list->space.part[i];  \
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);                                 \
        first += length;                                                                     \
      } while (first < room);                                                                \
      most *= 2;                                                                             \
    } while (most <= room);                                                                  \
  }

// Turns `sum` of each work-item into the sum of those up to it. sums: local memory of 2 * LOCAL ints.
#define SCAN(sums, sum)                                        \
  {                                                            \
    int at = 0;                                                \
    (sums)[item] = sum;                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                              \
    for (int step = 1; step < LOCAL; step *= 8) {              \
      _Pragma("unroll") for (int i = 1; i < 8; ++i) sum +=     \
          item >= i * step ? (sums)[at + item - i * step] : 0; \
      at = LOCAL - at;                                         \
      (sums)[at + item] = sum;                                 \
      barrier(CLK_LOCAL_MEM_FENCE);                            \
    }                                                          \
  }

// Raises `bound`, which is at most the smallest key, until at most `limit` keys are not below it,
// but at least `enough` of them (or all). EACH_KEY(action) applies a statement to each key of the
// work-item. The keys are counted by bins of their range, best first; the bin in which the bound
// lies becomes the next range. Scores above 1 are rare: bins divide the range up to 1, and the
// first bin takes all above. TAKE(EACH_KEY) follows for each range, when each bin has become the
// number of better keys.
#define BIN(key) (BINS - 1 - (int)min(((key)-bound) >> shift, BINS - 1ul))
#define SELECT(EACH_KEY, enough, limit, bound, TAKE)                                 \
  {                                                                                  \
    __local int* const bins = list->space.bounds.bins;                               \
    ulong high = ~0ul, end = max(bound, FN(key)(1.0f, 0));                           \
    int above = 0, chosen;                                                           \
    do {                                                                             \
      const int shift = max(0, 64 - (31 - (int)clz(BINS)) - (int)clz(end - bound));  \
      for (int i = item; i < BINS; i += LOCAL) bins[i] = 0;                          \
      barrier(CLK_LOCAL_MEM_FENCE);                                                  \
      EACH_KEY(if (key >= bound && key <= high) atomic_inc(&bins[BIN(key)]);)        \
      barrier(CLK_LOCAL_MEM_FENCE);                                                  \
      int own = 0;                                                                   \
      for (int i = 0; i < BINS / LOCAL; ++i) own += bins[item * (BINS / LOCAL) + i]; \
      int sum = own;                                                                 \
      SCAN(list->space.bounds.sums, sum)                                             \
      int before = above + sum - own;                                                \
      for (int i = 0; i < BINS / LOCAL; ++i) {                                       \
        const int bin = item * (BINS / LOCAL) + i, after = before + bins[bin];       \
        bins[bin] = before;                                                          \
        if (before < (enough) && (after >= (enough) || bin == BINS - 1)) {           \
          list->bin = bin;                                                           \
          list->above = before;                                                      \
          list->chosen = after;                                                      \
        }                                                                            \
        before = after;                                                              \
      }                                                                              \
      barrier(CLK_LOCAL_MEM_FENCE);                                                  \
      chosen = list->chosen;                                                         \
      TAKE(EACH_KEY);                                                                \
      above = list->above;                                                           \
      if (list->bin > 0) high = bound + ((ulong)(BINS - list->bin) << shift) - 1;    \
      bound += (ulong)(BINS - 1 - list->bin) << shift;                               \
      end = high;                                                                    \
      barrier(CLK_LOCAL_MEM_FENCE);                                                  \
    } while (chosen > (limit));                                                      \
  }

#define TAKE_NOTHING(EACH_KEY)
// Sorts the list->chosen best keys into local memory, taken[1]; SHORT is their limit. Moves keys to
// their bins first, so that only keys of the same bin have to be compared.
#define TAKE_SORTED(EACH_KEY)                                                         \
  __local ulong(*const taken)[SHORT] = list->space.bounds.taken;                      \
  const bool is_last = chosen <= SHORT;                                               \
  const int last = is_last ? list->bin : list->bin - 1;                               \
  const int taken_end = is_last ? chosen : list->above;                               \
  EACH_KEY(if (key >= bound && key <= high && BIN(key) <= last)                       \
               taken[0][atomic_inc(&bins[BIN(key)])] = key;);                         \
  barrier(CLK_LOCAL_MEM_FENCE);                                                       \
  for (int i = above + item; i < taken_end; i += LOCAL) {                             \
    const ulong key = taken[0][i];                                                    \
    const int own_bin = BIN(key), own_end = bins[own_bin];                            \
    int place = own_bin > 0 ? bins[own_bin - 1] : above;                              \
    for (int other = place; other < own_end; ++other) place += taken[0][other] > key; \
    taken[1][place] = key;                                                            \
  }                                                                                   \
  barrier(CLK_LOCAL_MEM_FENCE)

// Returns a term for one box. The sum of the terms of two boxes is the least area that they share
// if one suppresses the other, because their common part exceeds `overlap` of the union; it is
// reduced a little for rounding.
float FN(need)(float area, float overlap) {
  const bool usual = overlap > 0 && area > 1e-30f && area < 1e30f;
  return usual ? area * (overlap / (1 + overlap) * 0.99999f) : -INFINITY;
}

float4 FN(corners)(float2 low, float2 high) { return (float4)(low.x, low.y, high.x, high.y); }

// Returns a / b rounded to nearest, which OpenCL does not guarantee.
float FN(quotient)(float a, float b) {
  const float q = a / b, rest = fused(-q, b, a), better = fused(rest, 1.0f / b, q);
  return isfinite(better) ? better : q;
}
// Give the same results for NaN as std::min, std::max and std::clamp.
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
#define CLAMP(v, low, high) ((v) < (low) ? (low) : (high) < (v) ? (high) : (v))
