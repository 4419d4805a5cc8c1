// Attention of halves by the matrix instructions of a warp of 32 work-items: a warp computes 16 * TILE_P
// queries of a head, a work-group WARPS times as many, meeting BLOCK keys at a time. Keys and values lie
// in local memory, copied while the block before them is computed; queries, scores and sums stay in
// registers. Lines of local memory are 16 bytes longer than a head, so that eight of them lie in different
// banks. The scores of two columns of tiles are the left operand of the product with the values. Defines
// besides those of attention_operands.cl:
//   SIZE, VALUE_SIZE      channels of a head, multiples of 8
//   BLOCK                 a multiple of 16
//   STAGES                blocks in local memory: 1 or 2
//   CAUSAL                query i sees the keys up to i
//   MMA_PTX               inline PTX; else plain C computes the same values
#include "kernels/attention/attention_operands.cl"

#define BYTES 0
#define SHIFTED 0
#include "kernels/common/mma.cl"
#if !MMA_PTX  // Keeps the compiler of a CPU from unrolling hundreds of sums.
#undef UNROLL
#define UNROLL _Pragma("unroll 1")
#endif

#define DEPTH ((SIZE + 15) / 16 * 16)
#define CHANNELS ((VALUE_SIZE + 15) / 16 * 16)
#define KEY_LINE (DEPTH + 8)  // in halves
#define VALUE_LINE (CHANNELS + 8)
#define STAGE (BLOCK * (KEY_LINE + VALUE_LINE) / 8)  // in units of 16 bytes
#define ITEMS (32 * WARPS)
#define LOG2_E 1.44269504f

#if MMA_PTX
#define SCRATCH_WORDS 0
inline void FN(copy)(__local uint4* to, __global const uint4* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(size_t)to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
#define COMMIT_COPIES asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_FOR_COPIES asm volatile("cp.async.wait_group 0;" ::: "memory")
// Loads the right operands of two tiles of 8 columns from 16 rows of keys, 16 channels each.
inline void FN(load_keys)(uint* to, __local const half* from, int lane) {
  const uint at = (uint)(size_t)(from + (lane / 16 * 8 + lane % 8) * KEY_LINE + lane / 8 % 2 * 8);
  uint w0, w1, w2, w3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3)
               : "r"(at)
               : "memory");
  to[0] = w0, to[1] = w1, to[2] = w2, to[3] = w3;
}
// Loads the right operands from 16 rows of values, 16 channels each, transposed.
inline void FN(load_values)(uint* to, __local const half* from, int lane) {
  const uint at = (uint)(size_t)(from + lane % 16 * VALUE_LINE + lane / 16 * 8);
  uint w0, w1, w2, w3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3)
               : "r"(at)
               : "memory");
  to[0] = w0, to[1] = w1, to[2] = w2, to[3] = w3;
}
inline uint FN(pack)(float low, float high) {
  uint word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
inline float FN(of_lane)(float value, int distance) {
  uint other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;"
               : "=r"(other)
               : "r"(as_uint(value)), "r"(distance));
  return as_float(other);
}
// Reduces the values of the four work-items of a row by OP.
#define MEET(value, OP)                     \
  value = OP(value, FN(of_lane)(value, 1)); \
  value = OP(value, FN(of_lane)(value, 2));
#define EXP2 native_exp2
#else
#define OWN_WORDS (32 + 8 * TILE_P * BLOCK)  // of a warp: a number for each lane, and its weights
#define SCRATCH_WORDS (WARPS * OWN_WORDS)
inline void FN(copy)(__local uint4* to, __global const uint4* from, bool inside) {
  *to = inside ? *from : (uint4)(0);
}
#define COMMIT_COPIES
#define WAIT_FOR_COPIES
inline uint FN(pack)(float low, float high) {
  uint word;
  vstore_half2_rte((float2)(low, high), 0, (half*)&word);
  return word;
}
#define MEET(value, OP)                                                   \
  exchange[lane] = value;                                                 \
  barrier(CLK_LOCAL_MEM_FENCE);                                           \
  value = OP(OP(exchange[lane / 4 * 4], exchange[lane / 4 * 4 + 1]),      \
             OP(exchange[lane / 4 * 4 + 2], exchange[lane / 4 * 4 + 3])); \
  barrier(CLK_LOCAL_MEM_FENCE);
#define EXP2 exp2
#endif
#define PLUS(x, y) ((x) + (y))

// Computes 2 to the power of x - y, both scaled by log2(e). With a bias y may be the least float,
// which the factor would make infinite.
#if BIAS || MASK
#define WEIGHT(x, y) EXP2(((x) - (y)) * LOG2_E)
#else
#define WEIGHT(x, y) EXP2(fma(x, LOG2_E, -(y)*LOG2_E))
#endif

WORK_GROUP(32, WARPS, 1)
KERNEL(IN(T, query), IN(T, key), IN(T, value), BIAS_PARAM MASK_PARAM OUT(T, out),
       const FN(Args) a) {
  SHARED(uint4, memory, STAGES * STAGE + SCRATCH_WORDS / 4);
  const int lane = get_local_id(0), quarter = lane % 4, warp = get_local_id(1);
  const int item = warp * 32 + lane;
#if !MMA_PTX
  __local float* const exchange = (__local float*)(memory + STAGES * STAGE) + warp * OWN_WORDS;
  __local half* const weights = (__local half*)(exchange + 32);
#endif
  DECLARE_HEAD((int)get_group_id(0) / a.blocks)
  const int first = (int)get_group_id(0) % a.blocks * a.rows;
  const int first_row = first + warp * (16 * TILE_P) + lane / 4;
#if CAUSAL
  const int end = min(a.keys, first + a.rows);
#else
  const int end = a.keys;
#endif

#define COPY(stage, begin)                                                                        \
  {                                                                                               \
    __local uint4* const to = memory + (stage)*STAGE;                                             \
    for (int e = item; e < BLOCK * (DEPTH / 8); e += ITEMS) {                                     \
      const int j = e / (DEPTH / 8), d = e % (DEPTH / 8), at = (begin) + j;                       \
      FN(copy)                                                                                    \
      (to + j * (KEY_LINE / 8) + d,                                                               \
       (__global const uint4*)(keys + min(at, end - 1) * a.k_row + min(d * 8, SIZE - 8)),         \
       at < end && d * 8 < SIZE);                                                                 \
    }                                                                                             \
    for (int e = item; e < BLOCK * (CHANNELS / 8); e += ITEMS) {                                  \
      const int j = e / (CHANNELS / 8), d = e % (CHANNELS / 8), at = (begin) + j;                 \
      FN(copy)                                                                                    \
      (to + BLOCK * (KEY_LINE / 8) + j * (VALUE_LINE / 8) + d,                                    \
       (__global const uint4*)(values + min(at, end - 1) * a.v_row + min(d * 8, VALUE_SIZE - 8)), \
       at < end && d * 8 < VALUE_SIZE);                                                           \
    }                                                                                             \
    COMMIT_COPIES;                                                                                \
  }
  COPY(0, 0)

#if MMA_PTX
  uint own[TILE_P][DEPTH / 16][4];
#define READ_QUERIES(i)                                                               \
  UNROLL for (int k = 0; k < DEPTH / 16; ++k) {                                       \
    UNROLL for (int e = 0; e < 4; ++e) {                                              \
      const int row = min(first_row + i * 16 + e % 2 * 8, a.queries - 1);             \
      const int channel = k * 16 + e / 2 * 8;                                         \
      __global const T* const from = queries + row * a.q_row + channel + quarter * 2; \
      own[i][k][e] = channel < SIZE ? *(__global const uint*)from : 0;                \
    }                                                                                 \
  }
#else
#define READ_QUERIES(i)
#endif
  float sums[TILE_P][CHANNELS / 8][4], most[TILE_P][2], total[TILE_P][2];
  UNROLL for (int i = 0; i < TILE_P; ++i) {
    READ_QUERIES(i)
    UNROLL for (int c = 0; c < CHANNELS / 8; ++c) {
      UNROLL for (int e = 0; e < 4; ++e) { sums[i][c][e] = 0; }
    }
    UNROLL for (int h = 0; h < 2; ++h) { most[i][h] = LEAST, total[i][h] = 0; }
  }

  int stage = 0;
  for (int begin = 0; begin < end; begin += BLOCK) {
    WAIT_FOR_COPIES;
    barrier(CLK_LOCAL_MEM_FENCE);
#if STAGES == 2
    if (begin + BLOCK < end) COPY(1 - stage, begin + BLOCK)
#endif
    __local const half* const block_keys = (__local const half*)(memory + stage * STAGE);
    __local const half* const block_values = block_keys + BLOCK * KEY_LINE;
    float scores[TILE_P][BLOCK / 8][4];
    UNROLL for (int i = 0; i < TILE_P; ++i) {
      UNROLL for (int j = 0; j < BLOCK / 8; ++j) {
        UNROLL for (int e = 0; e < 4; ++e) { scores[i][j][e] = 0; }
      }
    }
#if MMA_PTX
    UNROLL for (int k = 0; k < DEPTH / 16; ++k) {
      UNROLL for (int j = 0; j < BLOCK / 16; ++j) {
        uint right[4];
        FN(load_keys)(right, block_keys + j * (16 * KEY_LINE) + k * 16, lane);
        UNROLL for (int i = 0; i < TILE_P; ++i) {
          FN(mma)
          (scores[i][2 * j], own[i][k][0], own[i][k][1], own[i][k][2], own[i][k][3], right[0],
           right[1]);
          FN(mma)
          (scores[i][2 * j + 1], own[i][k][0], own[i][k][1], own[i][k][2], own[i][k][3], right[2],
           right[3]);
        }
      }
    }
#else
    UNROLL for (int i = 0; i < TILE_P; ++i) UNROLL for (int j = 0; j < BLOCK / 8; ++j)
        UNROLL for (int e = 0; e < 4; ++e) {
      const int row = min(first_row + i * 16 + e / 2 * 8, a.queries - 1);
      UNROLL for (int d = 0; d < SIZE; ++d) scores[i][j][e] +=
          vload_half(d, queries + row * a.q_row) *
          vload_half(d, block_keys + (j * 8 + quarter * 2 + e % 2) * KEY_LINE);
    }
#endif

#define EACH_SCORE(i, h, action)                          \
  UNROLL for (int j = 0; j < BLOCK / 8; ++j) {            \
    UNROLL for (int e = 2 * h; e < 2 * h + 2; ++e) {      \
      const int at = begin + j * 8 + quarter * 2 + e % 2; \
      action                                              \
    }                                                     \
  }
    UNROLL for (int i = 0; i < TILE_P; ++i) {
      UNROLL for (int h = 0; h < 2; ++h) {
        const int row = first_row + i * 16 + h * 8;
        const int inside_row = min(row, a.queries - 1);
        EACH_SCORE(i, h, {
          const int inside = min(at, end - 1);
          scores[i][j][e] =
              MASKED(BIASED(scores[i][j][e] * a.scale, inside_row, inside), inside_row, inside);
        })
        if (CAUSAL || begin + BLOCK > end)
          EACH_SCORE(i, h, {
            if (at >= end || (CAUSAL && at > row)) scores[i][j][e] = -INFINITY;
          })
        float largest = most[i][h];
        EACH_SCORE(i, h, { largest = fmax(largest, scores[i][j][e]); })
        MEET(largest, fmax)
        const float change = EXP2((most[i][h] - largest) * LOG2_E);
        most[i][h] = largest;
        float sum = 0;
        EACH_SCORE(i, h, {
          scores[i][j][e] = WEIGHT(scores[i][j][e], largest);
          sum += scores[i][j][e];
        })
        total[i][h] = fma(total[i][h], change, sum);
        UNROLL for (int c = 0; c < CHANNELS / 8; ++c) {
          sums[i][c][2 * h] *= change;
          sums[i][c][2 * h + 1] *= change;
        }
      }
    }

#if MMA_PTX
    UNROLL for (int j = 0; j < BLOCK / 16; ++j) {
      uint left[TILE_P][4];
      UNROLL for (int i = 0; i < TILE_P; ++i) {
        UNROLL for (int e = 0; e < 4; ++e) {
          left[i][e] = FN(pack)(scores[i][2 * j + e / 2][e % 2 * 2],
                                scores[i][2 * j + e / 2][e % 2 * 2 + 1]);
        }
      }
      UNROLL for (int c = 0; c < CHANNELS / 16; ++c) {
        uint right[4];
        FN(load_values)(right, block_values + j * (16 * VALUE_LINE) + c * 16, lane);
        UNROLL for (int i = 0; i < TILE_P; ++i) {
          FN(mma)
          (sums[i][2 * c], left[i][0], left[i][1], left[i][2], left[i][3], right[0], right[1]);
          FN(mma)
          (sums[i][2 * c + 1], left[i][0], left[i][1], left[i][2], left[i][3], right[2], right[3]);
        }
      }
    }
#else
    UNROLL for (int i = 0; i < TILE_P; ++i) UNROLL for (int j = 0; j < BLOCK / 8; ++j)
        UNROLL for (int e = 0; e < 4; ++e) vstore_half_rte(
            scores[i][j][e], (i * 16 + lane / 4 + e / 2 * 8) * BLOCK + j * 8 + quarter * 2 + e % 2,
            weights);
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < TILE_P; ++i) UNROLL for (int c = 0; c < VALUE_SIZE / 8; ++c)
        UNROLL for (int e = 0; e < 4; ++e) UNROLL for (int j = 0; j < BLOCK; ++j) sums[i][c][e] +=
        vload_half((i * 16 + lane / 4 + e / 2 * 8) * BLOCK + j, weights) *
        vload_half(j * VALUE_LINE + c * 8 + quarter * 2 + e % 2, block_values);
#endif
#if STAGES == 2
    stage = 1 - stage;
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    if (begin + BLOCK < end) COPY(0, begin + BLOCK)
#endif
  }

  UNROLL for (int i = 0; i < TILE_P; ++i) {
    UNROLL for (int h = 0; h < 2; ++h) {
      float whole = total[i][h];
      MEET(whole, PLUS)
      const float scale = 1 / whole;
      const int row = first_row + i * 16 + h * 8;
      if (row < a.queries) {
        UNROLL for (int c = 0; c < VALUE_SIZE / 8; ++c) {
          *(__global uint*)(results + row * a.o_row + c * 8 + quarter * 2) =
              FN(pack)(sums[i][c][2 * h] * scale, sums[i][c][2 * h + 1] * scale);
        }
      }
    }
  }
}
