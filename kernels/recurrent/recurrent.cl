// Recurrent cells and sequences: a work-group computes all steps of one direction of one image from what
// recurrent_input.cl computed of its gates; its work-items share the hidden units, which are padded to a whole number
// of vectors for each gate. The weights of the input come first, then those of the states and the biases (both padded):
// [direction][block][state][gate][unit in block]. Defines:
//   T, H, C    storage types of the outputs and of the first states
//   LENGTH     type of the sequences' lengths
//   KIND       0 RNN, 1 LSTM, 2 GRU that applies the reset gate before the matrix, 3 GRU that
//              applies it after the matrix
//   SEQUENCE   1: a sequence; else a cell, which has one step
//   MOST       hidden units for which there is room
//   KEPT       vectors of hidden units in local memory
//   GATES, BIAS_ROWS  blocks of hidden units
//   VECTOR     hidden units of a work-item
//   CHAINS     sums of a product that are computed side by side
//   BLOCKED    blocks have VECTOR units; else all units are one block
//   LOCAL      work-group
// The functions f0, f1, f2 are the activations.
typedef struct {
#include "kernels/recurrent/recurrent_args.cl"
} FN(Args);

#define UNITS FLOATV(VECTOR)
#define UNITS_AT(p) LOADV(float, VECTOR, p)
// Rows of the weights for one state, and the distance between those of two gates.
#define STATE_ROWS (GATES * GATE_ROWS)
#define GATE_ROWS (BLOCKED ? VECTOR : a.padded)
// The gates to which the product of matrix and state is added directly. GRU's last gate needs the
// reset gate first.
#define STATED (KIND == 2 || KIND == 3 ? 2 : GATES)

UNITS FN(gate)(UNITS v, float clip) {
  return clip > 0 ? at_most(at_least(v, (UNITS)(-clip)), (UNITS)(clip)) : v;
}

// Adds the products of all states with `count` gates to g. `r` points to the first gate's weights.
void FN(multiply)(UNITS* g, const int count, __local const float* state, __global const float* r,
                  const FN(Args) a) {
  UNITS sums[CHAINS][GATES];
  for (int c = 0; c < CHAINS; ++c)
    for (int k = 0; k < count; ++k) sums[c][k] = 0;
  int j = 0;
  for (; j + CHAINS <= a.hidden; j += CHAINS)
    for (int c = 0; c < CHAINS; ++c)
      for (int k = 0; k < count; ++k)
        sums[c][k] = fma((UNITS)(state[j + c]), UNITS_AT(r + (j + c) * STATE_ROWS + k * GATE_ROWS),
                         sums[c][k]);
  for (; j < a.hidden; ++j)
    for (int k = 0; k < count; ++k)
      g[k] = fma((UNITS)(state[j]), UNITS_AT(r + j * STATE_ROWS + k * GATE_ROWS), g[k]);
  for (int c = 0; c < CHAINS; ++c)
    for (int k = 0; k < count; ++k) g[k] += sums[c][k];
}

WORK_GROUP(LOCAL, 1, 1)
KERNEL(IN(float, gates),
#include "kernels/recurrent/recurrent_tensors.cl"
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
  __global const float* const r = AT(weights) + a.states + d * a.hidden * GATES * a.padded;
  __global const float* const now = AT(gates) + (n * a.directions + d) * a.steps * GATES * a.padded;
  for (int i = item; i < a.padded; i += LOCAL) {
    h[i] = i < a.hidden ? LOADV(H, 1, AT(first_h) + n * a.h_n + d * a.h_d + i * a.h_i) : 0;
#if KIND == 1
    c[i] = i < a.hidden ? LOADV(C, 1, AT(first_c) + n * a.c_n + d * a.c_d + i * a.c_i) : 0;
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
    for (int i = item * VECTOR; i < a.padded; i += LOCAL * VECTOR) {
      __global const float* const block = r + (BLOCKED ? i * GATES * a.hidden : i);
      UNITS g[GATES];
      for (int k = 0; k < GATES; ++k) g[k] = UNITS_AT(now + (step * GATES + k) * a.padded + i);
      FN(multiply)(g, STATED, h, block, a);
#if KIND == 0
      STOREV(float, VECTOR, FN(f0)(FN(gate)(g[0], a.clip)), next + i);
#elif KIND == 1
      const UNITS cell = FN(f0)(FN(gate)(g[0], a.clip)) * UNITS_AT(c + i) +
                         FN(f0)(FN(gate)(g[1], a.clip)) * FN(f1)(FN(gate)(g[2], a.clip));
      STOREV(float, VECTOR, cell, c + i);
      STOREV(float, VECTOR, FN(f0)(FN(gate)(g[3], a.clip)) * FN(f2)(cell), next + i);
#elif KIND == 2
      STOREV(float, VECTOR, FN(f0)(FN(gate)(g[0], a.clip)), update + i);
      STOREV(float, VECTOR, FN(f0)(FN(gate)(g[1], a.clip)) * UNITS_AT(h + i), reset + i);
      STOREV(float, VECTOR, g[2], candidate + i);
#else
      UNITS state = UNITS_AT(AT(weights) + a.biases + (d * BIAS_ROWS + 3) * a.padded + i);
      FN(multiply)(&state, 1, h, block + 2 * GATE_ROWS, a);
      const UNITS update = FN(f0)(FN(gate)(g[0], a.clip));
      const UNITS fresh = FN(f1)(FN(gate)(g[2] + FN(f0)(FN(gate)(g[1], a.clip)) * state, a.clip));
      STOREV(float, VECTOR, (1.0f - update) * fresh + update * UNITS_AT(h + i), next + i);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if KIND == 2
    for (int i = item * VECTOR; i < a.padded; i += LOCAL * VECTOR) {
      UNITS v = UNITS_AT(candidate + i);
      FN(multiply)(&v, 1, reset, r + (BLOCKED ? i * GATES * a.hidden : i) + 2 * GATE_ROWS, a);
      const UNITS gate = UNITS_AT(update + i);
      STOREV(float, VECTOR, (1.0f - gate) * FN(f1)(FN(gate)(v, a.clip)) + gate * UNITS_AT(h + i),
             next + i);
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
