// Applies the activations of a YOLO head. One work-item processes one region of one cell. Defines:
//   T_IN, T_OUT  storage types
//   SOFTMAX      1: over the classes; else each class has a logistic function
//   GROUP        size of the work-group
typedef struct {
#include "kernels/detection/region_yolo_args.cl"
} FN(Args);

WORK_GROUP(GROUP, 1, 1)
KERNEL(IN(T_IN, in), OUT(T_OUT, out), const FN(Args) r) {
  int cell = (int)get_global_id(0);
  if (cell >= r.cells) return;
  const int w = cell % r.width;
  cell /= r.width;
  const int h = cell % r.height;
  cell /= r.height;
  const int region = cell % r.regions, n = cell / r.regions;
  const int first = region * (r.coords + 1 + r.classes);
  __global const T_IN* source = AT(in) + n * r.in_n + first * r.in_c + h * r.in_h + w * r.in_w;
  __global T_OUT* target = AT(out) + n * r.out_n + first * r.out_c + h * r.out_h + w * r.out_w;

  const int logistic_end = SOFTMAX ? r.coords + 1 : r.coords + 1 + r.classes;
  for (int e = 0; e < logistic_end; ++e) {
    float v = LOADV(T_IN, 1, source + e * r.in_c);
    if (e < 2 || e >= r.coords) v = gate_quotient(1.0f, 1.0f + gate_exp(-v));
    STOREV(T_OUT, 1, v, target + e * r.out_c);
  }
#if SOFTMAX
  source += logistic_end * r.in_c;
  target += logistic_end * r.out_c;
  float largest = -INFINITY, sum = 0.0f;
  for (int c = 0; c < r.classes; ++c) largest = fmax(largest, LOADV(T_IN, 1, source + c * r.in_c));
  for (int c = 0; c < r.classes; ++c)
    sum += gate_weight(LOADV(T_IN, 1, source + c * r.in_c) - largest);
  for (int c = 0; c < r.classes; ++c) {
    const float v = gate_weight(LOADV(T_IN, 1, source + c * r.in_c) - largest) / sum;
    STOREV(T_OUT, 1, v, target + c * r.out_c);
  }
#endif
}
