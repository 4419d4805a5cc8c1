// Computes the part of a recurrent layer's gates that does not depend on states, for all steps at
// once: bias + W x. A work-item computes VECTOR rows of STEPS steps. Results are
// [image][direction][step][gate][unit]. The weights are [direction][block][input][row in block];
// see recurrent.cl. Defines:
//   T          storage type of the input
//   VECTOR     rows of a work-item
//   STEPS      steps of a work-item
//   BLOCKED    blocks have VECTOR rows; else all rows are one block
//   LOCAL      work-group
typedef struct {
#include "kernels/recurrent/recurrent_input_args.cl"
} FN(Args);

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, x), IN(float, weights), OUT(float, gates), const FN(Args) a) {
  const int blocks = a.rows / VECTOR, tiles = (a.steps + STEPS - 1) / STEPS;
  int id = get_global_id(0);
  if (id >= a.images * a.directions * tiles * blocks) return;
#if BLOCKED  // the weights of a block stay in the cache
  const int tile = id % tiles, row = id / tiles % blocks * VECTOR;
#else  // neighbouring work-items read adjacent weights
  const int tile = id / blocks % tiles, row = id % blocks * VECTOR;
#endif
  const int image_direction = id / (tiles * blocks);
  const int d = image_direction % a.directions, n = image_direction / a.directions;
  __global const float* const w =
      AT(weights) + d * a.inputs * a.rows + (BLOCKED ? row * a.inputs : row);
  FLOATV(VECTOR) sum[STEPS];
  __global const T* from[STEPS];
  for (int s = 0; s < STEPS; ++s) {
    sum[s] = LOADV(float, VECTOR, AT(weights) + a.biases + d * a.stated + row);
    from[s] = AT(x) + n * a.x_n + min(tile * STEPS + s, a.steps - 1) * a.x_t;
  }
  for (int j = 0; j < a.inputs; ++j) {
    const FLOATV(VECTOR) weight = LOADV(float, VECTOR, w + j * (BLOCKED ? VECTOR : a.rows));
    for (int s = 0; s < STEPS; ++s)
      sum[s] = fma((FLOATV(VECTOR))(LOADV(T, 1, from[s] + j * a.x_i)), weight, sum[s]);
  }
  for (int s = 0; s < STEPS && tile * STEPS + s < a.steps; ++s)
    STOREV(float, VECTOR, sum[s],
           AT(gates) + (image_direction * a.steps + tile * STEPS + s) * a.rows + row);
}
