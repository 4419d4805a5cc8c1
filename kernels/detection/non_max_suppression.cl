// NonMaxSuppression in two launches. The first (MERGE 0) has a work-group for each class of each
// image: it collects the candidates, sorts and suppresses them, and leaves the remaining ones at
// the front of its list. The second (MERGE 1) is one work-group, which writes the rows. Unused rows
// are -1. Defines besides MERGE:
//   BOX_T, SCORE_T, INDEX  storage types; type of the selected indices
//   SORTED                 1: rows are written by score, else list after list
//   DETAILS, T             1: there are outputs with scores, of type T, and with the number of rows
//   CENTER                 1: boxes are centre and size, else corners
//   LOCAL, PART, WORDS     see common/boxes.cl
#include "kernels/common/boxes.cl"

typedef struct {
#include "kernels/detection/non_max_suppression_args.cl"
} FN(Args);

// Returns the box as y0, x0, y1, x1.
float4 FN(box)(__global const BOX_T* p, int step) {
  const float4 v = (float4)(LOADV(BOX_T, 1, p), LOADV(BOX_T, 1, p + step),
                            LOADV(BOX_T, 1, p + 2 * step), LOADV(BOX_T, 1, p + 3 * step));
#if CENTER
  return FN(corners)(v.yx - v.wz / 2, v.yx + v.wz / 2);
#else
  return (float4)(MIN(v.x, v.z), MIN(v.y, v.w), MAX(v.x, v.z), MAX(v.y, v.w));  // unordered corners
#endif
}

float FN(area)(float4 b) { return (b.z - b.x) * (b.w - b.y); }

bool FN(suppresses)(float4 b, float4 better, float threshold) {
#pragma OPENCL FP_CONTRACT OFF  // comparisons need the roundings of evaluate()
  const float area = FN(area)(b), other = FN(area)(better);
  const float height = MIN(b.z, better.z) - MAX(b.x, better.x);
  const float width = MIN(b.w, better.w) - MAX(b.y, better.y);
  const float shared = MAX(height, 0.0f) * MAX(width, 0.0f);
  const float overlap =
      area <= 0 || other <= 0 ? 0.0f : FN(quotient)(shared, area + other - shared);
  return overlap >= threshold || isnan(overlap);
}

#define BOX(key) FN(box)(boxes + FN(index)(key) % a.boxes * a.box_b, a.box_i)
#define SUPPRESSES(key, box, better_key, better) FN(suppresses)(box, better, a.overlap)
#define GAP 0.0f
#define NEED(box) FN(need)(FN(area)(box), a.overlap)
#define LISTED(i) keys[i]

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(BOX_T, all_boxes), IN(SCORE_T, all_scores), OUT(INDEX, selected),
#if DETAILS
       OUT(T, details), OUT(INDEX, total),
#endif
       OUT(ulong, work), const FN(Args) a) {
  SHARED(FN(List), list, 1);
  const int item = (int)get_local_id(0);
  __global int* const counts = (__global int*)(AT(work) + a.counts);
  list->count = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#if !MERGE
  const int group = (int)get_group_id(0), n = group / a.classes;
  for (int i = group * a.most * 3 + item; i < (group + 1) * a.most * 3; i += LOCAL) {
    AT(selected)[i] = -1;
#if DETAILS
    STOREV(T, 1, -1.0f, AT(details) + i);
#endif
  }
  __global const BOX_T* const boxes = AT(all_boxes) + n * a.box_n;
  __global const SCORE_T* const scores =
      AT(all_scores) + n * a.score_n + group % a.classes * a.score_c;
  __global ulong* const keys = AT(work) + group * a.room;
  for (int i = item; i < a.boxes; i += LOCAL) {
    const float score = LOADV(SCORE_T, 1, scores + i * a.score_b);
    if (score > a.threshold) keys[atomic_inc(&list->count)] = FN(key)(score, group * a.boxes + i);
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const int count = list->count;
  SORT(keys, count)

  const int listed = count, most = a.most;
  __global float4* const places = (__global float4*)(AT(work) + a.places) + group * most;
#include "kernels/common/suppress.cl"
  if (item == 0) counts[group] = found;
#else
  __global ulong* const keys = AT(work) + a.merged;
  for (int other = item / 16; other < a.lists; other += LOCAL / 16)
    for (int i = item % 16; i < counts[other]; i += 16)
      keys[atomic_inc(&list->count)] =
          SORTED ? (AT(work) + other * a.room)[i] : FN(rank)(other * a.most + i, 0);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const int count = list->count;
  SORT(keys, count)
  for (int i = item; i < count; i += LOCAL) {
    ulong key = keys[i];
#if !SORTED
    const int place = (int)~(uint)(key >> 32);
    key = (AT(work) + place / a.most * a.room)[place % a.most];
#endif
    const int from = FN(index)(key) / a.boxes;
    AT(selected)[i * 3] = from / a.classes;
    AT(selected)[i * 3 + 1] = from % a.classes;
    AT(selected)[i * 3 + 2] = FN(index)(key) % a.boxes;
#if DETAILS
    STOREV(T, 1, (float)(from / a.classes), AT(details) + i * 3);
    STOREV(T, 1, (float)(from % a.classes), AT(details) + i * 3 + 1);
    STOREV(T, 1, FN(score)(key), AT(details) + i * 3 + 2);
#endif
  }
#if DETAILS
  if (item == 0) *AT(total) = count;
#endif
#endif
}
