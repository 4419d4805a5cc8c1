// Deformable attention: sums up samples of several maps, each with a weight. An item is VECTORS vectors of
// channels of a query in a group (head); a work-item computes `run` items one after the other. Defines
// besides those of grid_taps.cl:
//   T, GRID, WEIGHT  storage types of maps and output, of the points, of the weights
//   MAPS             number of maps
//   VECTOR, VECTORS  channels of an item
//   LOCAL            size of the work-group

typedef struct {
#include "kernels/sampling/deformable_attention_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#include "kernels/sampling/grid_taps.cl"

#define MAP_PARAM(l) IN(T, map##l),
#define GRID_PARAM(l) IN(GRID, grid##l),
#define CLEAR(v) FV sum##v = 0;
#define ADD_(from, v) sum##v = fma(LOADV(T, VECTOR, from + v * VECTOR), (FV)(share), sum##v);
// Adds the samples of a map. `weight` moves on from level to level.
#define ADD_LEVEL(l)                                                                      \
  {                                                                                       \
    __global const T* const map = AT(map##l) + n * a.map_n[l] + g * a.map_g[l] + c;       \
    __global const GRID* place =                                                          \
        AT(grid##l) + n * a.grid_n[l] + g * a.grid_g[l] + q * a.grid_q[l];                \
    for (int p = 0; p < a.points[l]; ++p, place += a.grid_p[l], weight += a.weight_p) {   \
      int xs[TAPS], ys[TAPS];                                                             \
      float across[TAPS], down[TAPS];                                                     \
      FN(taps)(LOADV(GRID, 1, place), a.width[l], xs, across);                            \
      FN(taps)(LOADV(GRID, 1, place + a.grid_xy[l]), a.height[l], ys, down);              \
      const float factor = LOADV(WEIGHT, 1, weight);                                      \
      for (int i = 0; i < TAPS; ++i)                                                      \
        for (int k = 0; k < TAPS; ++k)                                                    \
          if (ys[i] >= 0 && xs[k] >= 0) {                                                 \
            const float share = down[i] * across[k] * factor;                             \
            __global const T* const from = map + ys[i] * a.map_h[l] + xs[k] * a.map_w[l]; \
            REPEAT_WITH(VECTORS, from, ADD_)                                              \
          }                                                                               \
    }                                                                                     \
  }
#define SAVE(v) STOREV(T, VECTOR, sum##v, to + v * VECTOR);

WORK_GROUP(LOCAL, 1, 1)
KERNEL(REPEAT(MAPS, MAP_PARAM) REPEAT(MAPS, GRID_PARAM) IN(WEIGHT, weights), OUT(T, out),
       const FN(Args) a) {
  const int first = (int)get_global_id(0) * a.run, end = min(first + a.run, a.items);
  for (int item = first; item < end; ++item) {
    int rest = item;
    const int c = rest % a.blocks * (VECTORS * VECTOR);
    rest /= a.blocks;
    const int g = rest % a.groups;
    rest /= a.groups;
    const int q = rest % a.queries, n = rest / a.queries;
    __global const WEIGHT* weight = AT(weights) + n * a.weight_n + g * a.weight_g + q * a.weight_q;
    REPEAT(VECTORS, CLEAR)
    REPEAT(MAPS, ADD_LEVEL)
    __global T* const to = AT(out) + n * a.out_n + q * a.out_q + g * a.out_g + c;
    REPEAT(VECTORS, SAVE)
  }
}
