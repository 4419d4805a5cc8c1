// One step of recurrent cells and sequences, for devices with many compute units: a work-group computes UNITS
// hidden units of one direction of one image, and its PARTS work-items for each unit share the states of the
// product. A launch for each step takes the place of barriers between work-groups. A GRU that applies the reset gate
// before the matrix (KIND 2) has two launches a step, as its second product needs the reset gates of all units.
// Values lie in global memory after the gates, from `kept` on, in KEPT vectors of hidden units for each image and
// direction: h of even steps, h of odd steps; then c of an LSTM, or the reset states and update gates of KIND 2.
// Defines, besides those of recurrent.cl:
//   PHASE      0 the whole step; of KIND 2: 1 the update and reset gates, 2 the new state
//   UNITS      hidden units of a work-group
//   PARTS      work-items of a unit, a power of two
typedef struct {
#include "kernels/recurrent/recurrent_args.cl"
} FN(Args);

// Selects the gates whose products with the states this launch computes.
#define FIRST (PHASE == 2 ? 2 : 0)
#define COUNT (PHASE == 0 ? GATES : PHASE == 1 ? 2 : 1)

float FN(gate)(float v, float clip) { return clip > 0 ? at_most(at_least(v, -clip), clip) : v; }

WORK_GROUP(LOCAL, 1, 1)
KERNEL(OUT(float, gates),
#include "kernels/recurrent/recurrent_tensors.cl"
       const FN(Args) a, const int kept, const int t) {
  SHARED(float, sums, LOCAL* COUNT);
  const int item = get_local_id(0), part = item / UNITS;
  const int blocks = (a.hidden + UNITS - 1) / UNITS, group = get_group_id(0);
  const int i = group % blocks * UNITS + item % UNITS;  // index of the unit
  const int d = group / blocks % a.directions, n = group / blocks / a.directions;
  const bool finishes = (part == 0) & (i < a.hidden);
#if SEQUENCE
  const int length = clamp((int)AT(lengths)[n * a.length_n], 0, a.steps);
#else
  const int length = 1;
#endif
  const int step = (a.reverse >> d & 1) && t < length ? length - 1 - t : t;
  __global float* const mine = AT(gates) + kept + group / blocks * KEPT * a.hidden;
  __global const float* const old = mine + (t & 1) * a.hidden;
  __global const H* const begin = AT(first_h) + n * a.h_n + d * a.h_d;
  float sum[COUNT];
  for (int k = 0; k < COUNT; ++k) sum[k] = 0;
  if (i < a.hidden && t < length) {
    __global const float* const r =
        AT(weights) + a.states + (d * a.hidden * GATES + FIRST) * a.padded + i;
    for (int j = part; j < a.hidden; j += PARTS) {
#if PHASE == 2
      const float state = mine[2 * a.hidden + j];
#else
      const float state = t == 0 ? LOADV(H, 1, begin + j * a.h_i) : old[j];
#endif
      for (int k = 0; k < COUNT; ++k) sum[k] = fma(state, r[(j * GATES + k) * a.padded], sum[k]);
    }
  }
  for (int k = 0; k < COUNT; ++k) sums[k * LOCAL + item] = sum[k];
  for (int left = PARTS / 2; left > 0; left /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < left)
      for (int k = 0; k < COUNT; ++k)
        sums[k * LOCAL + item] += sums[k * LOCAL + item + left * UNITS];
  }
  if (finishes && t < length) {
    __global const float* const now =
        AT(gates) + (group / blocks * a.steps + step) * GATES * a.padded + i;
    float g[GATES];
    for (int k = 0; k < GATES; ++k) g[k] = now[k * a.padded];
    const float before = t == 0 ? LOADV(H, 1, begin + i * a.h_i) : old[i];
#if KIND == 0
    const float h = FN(f0)(FN(gate)(g[0] + sums[item], a.clip));
#elif KIND == 1
    const float c_before = t == 0 ? LOADV(C, 1, AT(first_c) + n * a.c_n + d * a.c_d + i * a.c_i)
                                  : mine[2 * a.hidden + i];
    for (int k = 0; k < GATES; ++k) g[k] = FN(gate)(g[k] + sums[k * LOCAL + item], a.clip);
    const float c = FN(f0)(g[0]) * c_before + FN(f0)(g[1]) * FN(f1)(g[2]);
    const float h = FN(f0)(g[3]) * FN(f2)(c);
    mine[2 * a.hidden + i] = c;
    if (t == length - 1) STOREV(T, 1, c, AT(last_c) + n * a.cell_n + d * a.cell_d + i * a.cell_i);
#elif PHASE == 1
    mine[2 * a.hidden + i] = FN(f0)(FN(gate)(g[1] + sums[LOCAL + item], a.clip)) * before;
    mine[3 * a.hidden + i] = FN(f0)(FN(gate)(g[0] + sums[item], a.clip));
#elif PHASE == 2
    const float update = mine[3 * a.hidden + i];
    const float h = (1.0f - update) * FN(f1)(FN(gate)(g[2] + sums[item], a.clip)) + update * before;
#else
    const float state =
        AT(weights)[a.biases + (d * BIAS_ROWS + 3) * a.padded + i] + sums[2 * LOCAL + item];
    const float update = FN(f0)(FN(gate)(g[0] + sums[item], a.clip));
    const float reset = FN(f0)(FN(gate)(g[1] + sums[LOCAL + item], a.clip));
    const float h =
        (1.0f - update) * FN(f1)(FN(gate)(g[2] + reset * state, a.clip)) + update * before;
#endif
#if PHASE != 1
    mine[((t + 1) & 1) * a.hidden + i] = h;
#if SEQUENCE
    STOREV(T, 1, h, AT(all) + n * a.all_n + d * a.all_d + step * a.all_t + i * a.all_i);
#endif
    if (t == length - 1) STOREV(T, 1, h, AT(last_h) + n * a.last_n + d * a.last_d + i * a.last_i);
#endif
  }
#if SEQUENCE && PHASE != 1
  if (finishes && t >= length) {  // steps after the end of a sequence are 0
    STOREV(T, 1, 0.0f, AT(all) + n * a.all_n + d * a.all_d + t * a.all_t + i * a.all_i);
    if (t == 0) {
      STOREV(T, 1, LOADV(H, 1, begin + i * a.h_i),
             AT(last_h) + n * a.last_n + d * a.last_d + i * a.last_i);
#if KIND == 1
      STOREV(T, 1, LOADV(C, 1, AT(first_c) + n * a.c_n + d * a.c_d + i * a.c_i),
             AT(last_c) + n * a.cell_n + d * a.cell_d + i * a.cell_i);
#endif
    }
  }
#endif
}
