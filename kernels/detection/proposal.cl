// Proposal: a work-group for each image moves the anchors by their deltas, sorts the boxes by
// score, suppresses overlapping ones, and writes the remaining ones. A picture of negative size has
// no regions. Defines:
//   T, SCORE_T, DELTA_T, SIZE_T                     storage types
//   PROBABILITIES                                   there is an output with the scores
//   CLIP_BEFORE, CLIP_AFTER, NORMALIZE, TENSORFLOW  attributes of the operation
//   LOCAL, PART, WORDS                              see common/boxes.cl
#include "kernels/common/boxes.cl"

typedef struct {
#include "kernels/detection/proposal_args.cl"
} FN(Args);

// A box includes its last pixel, except in TensorFlow's form.
#define PIXEL (TENSORFLOW ? 0.0f : 1.0f)

float4 FN(clipped)(float4 box, float2 size) {  // size: width, height
  const float4 v = MIN(box, size.xyxy);
  return MAX((float4)0.0f, v);
}

// Returns box `index`; anchors are the last dimension. `delta` points to the image's deltas.
float4 FN(box)(int index, __global const float* anchors, __global const DELTA_T* delta, float2 size,
               const FN(Args) * a) {
  const int anchor = index % a->anchors, cell = index / a->anchors;
  const int h = cell / a->columns, w = cell % a->columns;
  // TensorFlow's deltas are in the order y, x, height, width.
  const float2 shift =
      (TENSORFLOW ? (float2)((float)h, (float)w) : (float2)((float)w, (float)h)) * a->stride;
  const float4 start = vload4(anchor, anchors) + shift.xyxy;
  const float4 box = TENSORFLOW ? CLAMP(start, (float4)0.0f, size.xyxy) : start;
  __global const DELTA_T* const d =
      delta + anchor * 4 * a->delta_c + h * a->delta_h + w * a->delta_w;
  const float2 place = (float2)(LOADV(DELTA_T, 1, d), LOADV(DELTA_T, 1, d + a->delta_c));
  const float2 growth =
      (float2)(LOADV(DELTA_T, 1, d + 2 * a->delta_c), LOADV(DELTA_T, 1, d + 3 * a->delta_c));
  const float2 extent = box.zw - box.xy + PIXEL;
  const float2 centre = place / a->coordinate_scale * extent + box.xy + 0.5f * extent;
  const float2 half_extent = 0.5f * exp(growth / a->size_scale) * extent;
  const float4 moved = FN(corners)(centre - half_extent, centre + half_extent);
  return CLIP_BEFORE ? FN(clipped)(moved, size - PIXEL) : moved;
}

float FN(area)(float4 b) { return (b.z - b.x + PIXEL) * (b.w - b.y + PIXEL); }

bool FN(suppresses)(float4 b, float4 better, float threshold) {
#pragma OPENCL FP_CONTRACT OFF  // comparisons need the roundings of evaluate()
  const float width = MIN(b.z, better.z) - MAX(b.x, better.x) + PIXEL;
  const float height = MIN(b.w, better.w) - MAX(b.y, better.y) + PIXEL;
  const float shared = MAX(width, 0.0f) * MAX(height, 0.0f);
  return shared > threshold * (FN(area)(b) + FN(area)(better) - shared);
}

#define BOX(key) FN(box)(FN(index)(key), AT(anchors), delta, size, &a)
#define SUPPRESSES(key, box, better_key, better) FN(suppresses)(box, better, a.overlap)
#define GAP (-PIXEL)
#define NEED(box) FN(need)(FN(area)(box), a.overlap)
#define LISTED(i) keys[i]

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(SCORE_T, scores), IN(DELTA_T, deltas), IN(SIZE_T, picture), IN(float, anchors),
       OUT(T, out),
#if PROBABILITIES
       OUT(T, probabilities),
#endif
       OUT(ulong, work), const FN(Args) a) {
  SHARED(FN(List), list, 1);
  const int item = (int)get_local_id(0), n = (int)get_group_id(0);
  const float first_size = LOADV(SIZE_T, 1, AT(picture));
  const float second_size = LOADV(SIZE_T, 1, AT(picture) + 1);
  // In TensorFlow's form, x runs along the rows.
  const float2 size =
      TENSORFLOW ? (float2)(first_size, second_size) : (float2)(second_size, first_size);
  const float2 least = a.least * (float2)(LOADV(SIZE_T, 1, AT(picture) + a.scale_x),
                                          LOADV(SIZE_T, 1, AT(picture) + 2));
  __global const DELTA_T* const delta = AT(deltas) + n * a.delta_n;
  __global ulong* const keys = AT(work) + n * a.room;
  const int count = size.x >= 0 && size.y >= 0 ? a.anchors * a.rows * a.columns : 0;
  for (int i = item; i < count; i += LOCAL) {
    const float4 box = FN(box)(i, AT(anchors), delta, size, &a);
    const float2 extent = box.zw - box.xy + PIXEL;
    const int anchor = i % a.anchors, cell = i / a.anchors;
    const float score = LOADV(SCORE_T, 1,
                              AT(scores) + n * a.score_n + (a.anchors + anchor) * a.score_c +
                                  cell / a.columns * a.score_h + cell % a.columns * a.score_w);
    const bool counts = extent.x >= least.x && extent.y >= least.y && !isnan(score);
    keys[i] = FN(key)(counts ? score : 0.0f, i);
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  SORT(keys, count)

  const int listed = min(count, a.before), most = a.most;
  __global float4* const places = (__global float4*)(AT(work) + a.places) + n * most;
#include "kernels/common/suppress.cl"

  for (int i = item; i < a.after; i += LOCAL) {
    float4 box = 0.0f;
    float score = 0;
    if (i < found) {
      box = CLIP_AFTER ? FN(clipped)(places[i], size) : places[i];
      if (NORMALIZE) box /= size.xyxy;
      score = FN(score)(keys[i]);
    }
    __global T* const to = AT(out) + (n * a.after + i) * 5;
    STOREV(T, 1, i < found ? (float)n : i == found ? -1.0f : 0.0f, to);  // -1 ends the list
    STOREV(T, 4, box, to + 1);
#if PROBABILITIES
    STOREV(T, 1, score, AT(probabilities) + n * a.after + i);
#endif
  }
}
