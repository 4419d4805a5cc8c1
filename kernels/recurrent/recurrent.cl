// Recurrent cells and sequences: a work-group computes all steps of one direction of one image; its
// work-items share the hidden units. Weights are packed as [direction][input, then hidden][row],
// where a row is a unit of a gate (units of one gate are adjacent), so that neighbouring work-items
// read adjacent memory; the biases follow. Defines:
//   T, LENGTH  storage type; type of the sequences' lengths
//   KIND       0 RNN, 1 LSTM, 2 GRU that applies the reset gate before the matrix, 3 GRU that
//              applies it after the matrix
//   SEQUENCE   else a cell: one step
//   MOST       hidden units for which there is room
//   KEPT       vectors of hidden units in local memory
//   GATES, BIAS_ROWS  blocks of hidden units
//   LOCAL      work-group
// The functions f0, f1, f2 are the activations.
typedef struct {
#include "kernels/recurrent/recurrent_args.cl"
} FN(Args);

#define ROWS (GATES * a.hidden)
// The gates to which the product of matrix and state is added directly. GRU's last gate needs the
// reset gate first.
#define STATED (KIND == 2 || KIND == 3 ? 2 : GATES)

float FN(gate)(float v, float clip) { return clip > 0 ? clamp(v, -clip, clip) : v; }

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(T, x), IN(T, first_h),
#if KIND == 1
       IN(T, first_c),
#endif
#if SEQUENCE
       IN(LENGTH, lengths),
#endif
       IN(float, weights),
#if SEQUENCE
       OUT(T, all),
#endif
       OUT(T, last_h),
#if KIND == 1
       OUT(T, last_c),
#endif
       const FN(Args) a) {
  const int item = get_local_id(0);
  const int d = (int)get_group_id(0) % a.directions, n = (int)get_group_id(0) / a.directions;
  SHARED(float, h, KEPT* MOST);
  __local float* const next = h + MOST;
#if KIND == 1
  __local float* const c = h + 2 * MOST;
#elif KIND == 2
  __local float *const update = h + 2 * MOST, *const reset = h + 3 * MOST,
                       *const candidate = h + 4 * MOST;
#endif
  __global const float* const w = AT(weights) + d * (a.inputs + a.hidden) * ROWS;
  __global const float* const r = w + a.inputs * ROWS;
  __global const float* const bias = AT(weights) + a.biases + d * BIAS_ROWS * a.hidden;
  for (int i = item; i < a.hidden; i += LOCAL) {
    h[i] = LOADV(T, 1, AT(first_h) + n * a.h_n + d * a.h_d + i * a.h_i);
#if KIND == 1
    c[i] = LOADV(T, 1, AT(first_c) + n * a.c_n + d * a.c_d + i * a.c_i);
#endif
  }
#if SEQUENCE
  const int length = clamp((int)AT(lengths)[n * a.length_n], 0, a.steps);
#else
  const int length = 1;
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int t = 0; t < length; ++t) {
    const int step = a.reverse >> d & 1 ? length - 1 - t : t;
    __global const T* const now = AT(x) + n * a.x_n + step * a.x_t;
    for (int i = item; i < a.hidden; i += LOCAL) {
      float g[GATES];
      for (int k = 0; k < GATES; ++k) g[k] = bias[k * a.hidden + i];
      for (int j = 0; j < a.inputs; ++j) {
        const float value = LOADV(T, 1, now + j * a.x_i);
        for (int k = 0; k < GATES; ++k) g[k] = fma(value, w[j * ROWS + k * a.hidden + i], g[k]);
      }
      for (int j = 0; j < a.hidden; ++j) {
        const float value = h[j];
        for (int k = 0; k < STATED; ++k) g[k] = fma(value, r[j * ROWS + k * a.hidden + i], g[k]);
      }
#if KIND == 0
      next[i] = FN(f0)(FN(gate)(g[0], a.clip));
#elif KIND == 1
      c[i] = FN(f0)(FN(gate)(g[0], a.clip)) * c[i] +
             FN(f0)(FN(gate)(g[1], a.clip)) * FN(f1)(FN(gate)(g[2], a.clip));
      next[i] = FN(f0)(FN(gate)(g[3], a.clip)) * FN(f2)(c[i]);
#elif KIND == 2
      update[i] = FN(f0)(FN(gate)(g[0], a.clip));
      reset[i] = FN(f0)(FN(gate)(g[1], a.clip)) * h[i];
      candidate[i] = g[2];
#else
      float state = bias[3 * a.hidden + i];
      for (int j = 0; j < a.hidden; ++j) state = fma(h[j], r[j * ROWS + 2 * a.hidden + i], state);
      const float update = FN(f0)(FN(gate)(g[0], a.clip));
      const float fresh = FN(f1)(FN(gate)(g[2] + FN(f0)(FN(gate)(g[1], a.clip)) * state, a.clip));
      next[i] = (1 - update) * fresh + update * h[i];
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if KIND == 2
    for (int i = item; i < a.hidden; i += LOCAL) {
      float v = candidate[i];
      for (int j = 0; j < a.hidden; ++j) v = fma(reset[j], r[j * ROWS + 2 * a.hidden + i], v);
      next[i] = (1 - update[i]) * FN(f1)(FN(gate)(v, a.clip)) + update[i] * h[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int i = item; i < a.hidden; i += LOCAL) {
      h[i] = next[i];
#if SEQUENCE
      STOREV(T, 1, next[i], AT(all) + n * a.all_n + d * a.all_d + step * a.all_t + i * a.all_i);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = item; i < a.hidden; i += LOCAL) {
#if SEQUENCE
    for (int t = length; t < a.steps; ++t)  // steps after the end of a sequence are 0
      STOREV(T, 1, 0.0f, AT(all) + n * a.all_n + d * a.all_d + t * a.all_t + i * a.all_i);
#endif
    STOREV(T, 1, h[i], AT(last_h) + n * a.last_n + d * a.last_d + i * a.last_i);
#if KIND == 1
    STOREV(T, 1, c[i], AT(last_c) + n * a.cell_n + d * a.cell_d + i * a.cell_i);
#endif
  }
}
