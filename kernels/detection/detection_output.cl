// DetectionOutput in two launches. The first (MERGE 0) has a work-group for each list: one per
// class of an image, or one per image if TOGETHER. It collects the best candidates, sorts and
// suppresses them, and leaves the remaining ones at the front of the list. The second (MERGE 1) has
// one work-group per image: it keeps the best of the image's lists and writes them by label. Of a
// single list of one image (SINGLE), the first launch writes the output instead. Defines:
//   T, BOX_T, SCORE_T, PRIOR_T, OBJECT_T, FIRST_T  storage types
//   CODE        0 corner, 1 centre and size, 2 corner in sizes
//   VARIANCES   variances follow the priors
//   OBJECTNESS  there are two more inputs
//   ALIGNED     four numbers of a box, a prior or variances are an aligned vector
//   AHEAD       scores that a work-item loads at a time
//   NORMALIZED, CLIP_BEFORE, CLIP_AFTER, TOGETHER, SINGLE, IMAGES, LOCAL, PART, SHORT, WORDS
#include "kernels/common/boxes.cl"

typedef struct {
#include "kernels/detection/detection_output_args.cl"
} FN(Args);

#if ALIGNED
#define LOAD4(T, p, step) LOADV_ALIGNED(T, 4, p)
#else
#define LOAD4(T, p, step)                                                        \
  (float4)(LOADV(T, 1, p), LOADV(T, 1, (p) + step), LOADV(T, 1, (p) + 2 * step), \
           LOADV(T, 1, (p) + 3 * step))
#endif

float4 FN(clipped)(float4 v) { return CLAMP(v, (float4)0.0f, (float4)1.0f); }

float4 FN(decoded)(float4 prior, float4 delta) {
  const float2 size = prior.zw - prior.xy;
#if CODE == 0
  const float4 box = prior + delta;
#elif CODE == 2
  const float4 box = prior + delta * size.xyxy;
#else
  const float2 centre = delta.xy * size + (prior.xy + prior.zw) / 2;
  const float2 half_size = exp(delta.zw) * size / 2;
  const float4 box = FN(corners)(centre - half_size, centre + half_size);
#endif
  return CLIP_BEFORE ? FN(clipped)(box) : box;
}

// Returns the box of an element of the scores [class][prior]; the pointers are those of its image.
float4 FN(box)(int index, __global const BOX_T* boxes, __global const PRIOR_T* priors,
#if OBJECTNESS
               __global const FIRST_T* first,
#endif
               const FN(Args) * a) {
  const int label = index / a->priors, p = index % a->priors;
  const int at = (a->own_boxes ? p * a->classes + label : p) * 4;
  const int own = p * (NORMALIZED ? 4 : 5);
  const float4 scale =
      NORMALIZED ? (float4)1.0f : (float4)(a->width, a->height, a->width, a->height);
  float4 variance = 1.0f;
#if VARIANCES
  variance = LOAD4(PRIOR_T, priors + a->prior_r + p * 4 * a->prior_i, a->prior_i);
#endif
  float4 prior = LOAD4(PRIOR_T, priors + (own + !NORMALIZED) * a->prior_i, a->prior_i) / scale;
#if OBJECTNESS
  const float4 shift = LOAD4(FIRST_T, first + at * a->first_i, a->first_i);
  prior = FN(decoded)(prior, shift * variance) / scale;
#endif
  return FN(decoded)(prior, LOAD4(BOX_T, boxes + at * a->box_i, a->box_i) * variance);
}

float FN(area)(float4 b) { return (b.z - b.x) * (b.w - b.y); }

bool FN(suppresses)(ulong key, float4 b, ulong better_key, float4 better, const FN(Args) * a) {
#pragma OPENCL FP_CONTRACT OFF  // comparisons need the roundings of evaluate()
  const float width = MIN(b.z, better.z) - MAX(b.x, better.x);
  const float height = MIN(b.w, better.w) - MAX(b.y, better.y);
  const float shared = MAX(width, 0.0f) * MAX(height, 0.0f);
  const float both = FN(area)(b) + FN(area)(better) - shared;
  // A quotient exceeds the overlap only if its rounded product with `both` does not exceed `shared`;
  // most boxes need no division.
  if (a->overlap >= 0 && !(shared >= a->overlap * both)) return false;
  return FN(quotient)(shared, both) > a->overlap &&
         (!TOGETHER || FN(index)(key) / a->priors == FN(index)(better_key) / a->priors);
}

#if OBJECTNESS
#define BOX(key) FN(box)(FN(index)(key), boxes, priors, first_boxes, &a)
#else
#define BOX(key) FN(box)(FN(index)(key), boxes, priors, &a)
#endif
#define SUPPRESSES(key, box, better_key, better) FN(suppresses)(key, box, better_key, better, &a)
#define GAP 0.0f
#define NEED(box) FN(need)(FN(area)(box), a.overlap)

// Returns the key of a prior in a list, or 0 if it is no candidate; the pointers are those of its
// image.
ulong FN(candidate)(int p, int label, __global const SCORE_T* scores,
#if OBJECTNESS
                    __global const OBJECT_T* objects,
#endif
                    const FN(Args) * a) {
#if OBJECTNESS
  // A prior that is not an object is background with certainty.
  const bool is_object = !(LOADV(OBJECT_T, 1, objects + (2 * p + 1) * a->object_i) < a->objectness);
#define SCORE(c)                                                                            \
  (is_object              ? LOADV(SCORE_T, 1, scores + (p * a->classes + (c)) * a->score_i) \
   : (c) == a->background ? 1.0f                                                            \
                          : 0.0f)
#else
#define SCORE(c) LOADV(SCORE_T, 1, scores + (p * a->classes + (c)) * a->score_i)
#endif
#if TOGETHER
  float best = -1;
  int best_label = 0;
  for (int c = 1; c < a->classes; ++c) {
    const float score = SCORE(c);
    best_label = score > best ? c : best_label;
    best = score > best ? score : best;
  }
  return best_label > 0 && best >= a->confidence ? FN(key)(best, best_label * a->priors + p) : 0;
#else
  const float score = SCORE(label);
  return score > a->confidence ? FN(key)(score, label * a->priors + p) : 0;
#endif
}

#if OBJECTNESS
#define CANDIDATE(p) FN(candidate)(p, label, scores, objects, &a)
#else
#define CANDIDATE(p) FN(candidate)(p, label, scores, &a)
#endif
// Loads AHEAD scores before it uses the first one.
#define EACH_CANDIDATE(action)                                         \
  for (int begin = item; begin < candidates; begin += AHEAD * LOCAL) { \
    ulong ahead[AHEAD];                                                \
    _Pragma("unroll") for (int i = 0; i < AHEAD; ++i) {                \
      const int p = begin + i * LOCAL;                                 \
      ahead[i] = p < candidates ? CANDIDATE(p) : 0;                    \
    }                                                                  \
    _Pragma("unroll") for (int i = 0; i < AHEAD; ++i) {                \
      const ulong key = ahead[i];                                      \
      if (key != 0) {                                                  \
        action                                                         \
      }                                                                \
    }                                                                  \
  }

// Applies an action to the keys of all lists of the image.
#define EACH_FOUND(action)                                                                  \
  for (int other = n * a.lists + item / 16; other < (n + 1) * a.lists; other += LOCAL / 16) \
    for (int i = item % 16; i < counts[other]; i += 16) {                                   \
      const ulong key = (AT(work) + other * a.room)[i];                                     \
      action                                                                                \
    }

// Writes a row of the output.
void FN(store)(__global T* to, int n, ulong key, float4 box, const FN(Args) * a) {
  STOREV(T, 1, (float)n, to);
  STOREV(T, 1, (float)(FN(index)(key) / a->priors - TOGETHER), to + 1);
  STOREV(T, 1, FN(score)(key), to + 2);
  STOREV(T, 4, CLIP_AFTER ? FN(clipped)(box) : box, to + 3);
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(BOX_T, locations), IN(SCORE_T, confidences), IN(PRIOR_T, prior_boxes),
#if OBJECTNESS
       IN(OBJECT_T, all_objects), IN(FIRST_T, first_locations),
#endif
       OUT(T, out), OUT(ulong, work), const FN(Args) a) {
  SHARED(FN(List), list, 1);
  const int item = (int)get_local_id(0), group = (int)get_group_id(0);
  const int n = MERGE ? group : group / a.lists;
  __global int* const counts = (__global int*)(AT(work) + a.counts);

#if !MERGE
  for (int i = (int)get_global_id(0); i < a.rows * 7; i += (int)get_global_size(0))
    STOREV(T, 1, 0.0f, AT(out) + i);

  // Collects the candidates.
  __local int* const ends = list->words;
  const int label = SINGLE ? a.background == 0 : group % a.lists;
  *ends = a.priors;
  list->count = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  __global const PRIOR_T* const priors = AT(prior_boxes) + n * a.prior_n;
#if !NORMALIZED
  for (int p = item; p < a.priors; p += LOCAL)  // a box of image -1 ends the list
    if (LOADV(PRIOR_T, 1, priors + p * 5 * a.prior_i) == -1) atomic_min(ends, p);
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  __global const SCORE_T* const scores = AT(confidences) + n * a.score_n;
#if OBJECTNESS
  __global const OBJECT_T* const objects = AT(all_objects) + n * a.object_n;
  __global const FIRST_T* const first_boxes = AT(first_locations) + n * a.first_n;
#endif
  const int candidates = !TOGETHER && label == a.background ? 0 : *ends;
  ulong bound = FN(key)(a.confidence, -1);
  __global ulong* const keys = AT(work) + group * a.room;
#if SHORT
#define LISTED(i) list->space.bounds.taken[1][i]
  SELECT(EACH_CANDIDATE, max(a.listed, 1), SHORT, bound, TAKE_SORTED)
  const int count = list->chosen;
#else
#define LISTED(i) keys[i]
  SELECT(EACH_CANDIDATE, max(a.listed, 1), FN(room)(a.listed), bound, TAKE_NOTHING)
  EACH_CANDIDATE(if (key >= bound) keys[atomic_inc(&list->count)] = key;)
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const int count = list->count;
  SORT(keys, count)
#endif

  __global const BOX_T* const boxes = AT(locations) + n * a.box_n;
  const int listed = min(count, a.listed), most = a.most;
  __global float4* const places = (__global float4*)(AT(work) + a.places) + group * most;
#include "kernels/common/suppress.cl"
#if SINGLE
  for (int i = item; i < found; i += LOCAL) FN(store)(AT(out) + i * 7, n, keys[i], places[i], &a);
  if (item == 0 && found < a.rows) STOREV(T, 1, -1.0f, AT(out) + found * 7);  // ends the list
#else
  if (item == 0) counts[group] = found;
#endif
#else
  // Counts the detections in the images up to this one.
  __local int* const sums = list->words;
  for (int i = item; i < IMAGES; i += LOCAL) sums[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < (n + 1) * a.lists; i += LOCAL) atomic_add(&sums[i / a.lists], counts[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  int row = 0;
  for (int i = 0; i < n; ++i) row += min(sums[i], a.keep);
#if TOGETHER
  // Sorts the only list by label.
  const int kept = sums[n];
  __global const ulong* const keys = AT(work) + n * a.room;
  __global const float4* const places = (__global const float4*)(AT(work) + a.places) + n * a.most;
  __global ulong* const order = AT(work) + a.order + n * a.order_room;
  for (int i = item; i < kept; i += LOCAL) order[i] = FN(rank)(FN(index)(keys[i]) / a.priors, i);
  barrier(CLK_GLOBAL_MEM_FENCE);
  SORT(order, kept)
  for (int i = item; i < kept; i += LOCAL) {
    const int from = FN(index)(order[i]);
    FN(store)(AT(out) + (row + i) * 7, n, keys[from], places[from], &a);
  }
  row += kept;
#else
  // The best boxes of the lists are those not below a bound.
  ulong bound = 0;
  if (sums[n] > a.keep) {
    bound = FN(key)(a.confidence, -1);
    SELECT(EACH_FOUND, a.keep, a.keep, bound, TAKE_NOTHING)
  }
  // Processes LOCAL lists at a time; `ends` has the number of boxes up to the end of each list.
  __local int* const ends = list->space.bounds.bins;
  int first = 0;
  do {
    const int own = n * a.lists + first + item;
    const int count = first + item < a.lists ? counts[own] : 0;
    int taken = bound == 0 ? count : 0;
    for (int end = count; taken < end;) {
      const int middle = (taken + end) / 2;
      if ((AT(work) + own * a.room)[middle] >= bound)
        taken = middle + 1;
      else
        end = middle;
    }
    int sum = taken;
    SCAN(list->space.bounds.sums, sum)
    ends[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int boxes = ends[LOCAL - 1];
    for (int i = item; i < boxes; i += LOCAL) {
      int before = 0;  // number of lists before
      for (int step = FN(room)(min(a.lists, LOCAL)) / 2; step > 0; step /= 2)
        if (ends[before + step - 1] <= i) before += step;
      const int from = n * a.lists + first + before, at = i - (before ? ends[before - 1] : 0);
      __global const float4* const places = (__global const float4*)(AT(work) + a.places);
      const ulong key = (AT(work) + from * a.room)[at];
      FN(store)(AT(out) + (row + i) * 7, n, key, places[from * a.most + at], &a);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    row += boxes;
    first += LOCAL;
  } while (first < a.lists);
#endif
  if (item == 0 && n == IMAGES - 1 && row < a.rows)
    STOREV(T, 1, -1.0f, AT(out) + row * 7);  // ends the list
#endif
}
