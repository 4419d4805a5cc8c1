// Depthwise convolution of bytes by dot products of four: a work-item computes LINES lines of TILE_P
// neighbouring pixels x VECTOR channels. It reads four channels of a pixel as a word, and turns four pixels'
// words into one for each channel (a group of columns), which meets the weights of a row of the kernel, each
// at the byte of its column. So an output takes one dot product for three taps in a row, and no byte is
// converted. Sums are the bits of floats (kBitsOfSmallSums) and begin with start_sums; bytes outside the
// input are the channel's zero point. Weights are packed as [row of the kernel][shift][channel]: byte i of
// shift s is tap i - s. Defines:
//   T, STORED       type of the output, and how it is stored
//   VECTOR, TILE_P, LINES  channels, pixels and lines of a work-item
//   LANES, ROWS     work-group: lanes along channels x tiles
//   KERNEL_SIZE     of the kernel in both directions: 3 or 5
//   STEP_X, STEP_Y  strides
//   DOT_PTX         the instruction of NVIDIA's GPUs; else plain arithmetic

typedef struct {
#include "kernels/convolution/convolution_depthwise_dot_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define WORDS (VECTOR / 4)
#define COLUMNS ((TILE_P - 1) * STEP_X + KERNEL_SIZE)  // that a tile reads
#define READ_LINES ((LINES - 1) * STEP_Y + KERNEL_SIZE)

// The first columns of groups lie APART: three taps in a row always lie in one of those two apart, five lie
// in two of those four apart. A pixel takes the groups that it begins FIRST_SHIFT to LAST_SHIFT columns after.
#if KERNEL_SIZE == 3
#define APART 2
#define FIRST_SHIFT 0
#define LAST_SHIFT 1
#define GROUPS ((TILE_P - 1) * STEP_X / 2 + 1)
#else
#define APART 4
#define FIRST_SHIFT (-4)
#define LAST_SHIFT 3
#define GROUPS ((COLUMNS + 3) / 4)
#endif
#define SHIFTS (LAST_SHIFT - FIRST_SHIFT + 1)
#define GROUPED (APART * (GROUPS - 1) + 4)  // columns of all groups

#if DOT_PTX
#define UNROLL _Pragma("unroll")
inline int FN(dot)(uint x, int w, int sum) {
  int result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(w), "r"(sum));
  return result;
}
#define DOT(x, w, sum) FN(dot)(x, w, sum)
// Bytes of the words a and b, from the lowest digit of `places` on: 0 to 3 of a, 4 to 7 of b.
#define DEFINE_PICK(name, places)                                             \
  inline uint FN(name)(uint a, uint b) {                                      \
    uint picked;                                                              \
    asm("prmt.b32 %0, %1, %2, " #places ";" : "=r"(picked) : "r"(a), "r"(b)); \
    return picked;                                                            \
  }
DEFINE_PICK(low_pairs, 0x5140)
DEFINE_PICK(high_pairs, 0x7362)
DEFINE_PICK(low_halves, 0x5410)
DEFINE_PICK(high_halves, 0x7632)
#else
#define UNROLL
#include "kernels/common/dot4.cl"
#define DOT(x, w, sum) FN(dot4)(x, w, sum)
inline uint FN(low_pairs)(uint a, uint b) {
  return (a & 255) | (b & 255) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16;
}
inline uint FN(high_pairs)(uint a, uint b) { return FN(low_pairs)(a >> 16, b >> 16); }
inline uint FN(low_halves)(uint a, uint b) { return (a & 0xffff) | b << 16; }
inline uint FN(high_halves)(uint a, uint b) { return a >> 16 | (b & 0xffff0000u); }
#endif

WORK_GROUP(LANES, ROWS, 1)
KERNEL(IN(uint, in), IN(int, weights), IN(uint, zero_points), IN(int, start_sums), OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  const int row_of_groups = QUOTIENT(get_group_id(0), along);
  const int vector =
      ((int)get_group_id(0) - row_of_groups * a.along) * LANES + (int)get_local_id(0);
  const int tile = row_of_groups * ROWS + (int)get_local_id(1);
  if ((vector >= a.vectors) | (tile >= a.tiles)) return;
  const int row = QUOTIENT(tile, wide), n = QUOTIENT(row, high), c = vector * VECTOR;
  const int x = (tile - row * a.wide) * TILE_P, y = (row - n * a.high) * LINES;
  const int ix = x * STEP_X - a.pw, iy = y * STEP_Y - a.ph;

  uint outside[WORDS];
  UNROLL for (int w = 0; w < WORDS; ++w) { outside[w] = AT(zero_points)[vector * WORDS + w]; }
  int sums[LINES][TILE_P][VECTOR];
  UNROLL for (int i = 0; i < VECTOR; ++i) {
    const int start = AT(start_sums)[c + i];
    UNROLL for (int l = 0; l < LINES; ++l) {
      UNROLL for (int p = 0; p < TILE_P; ++p) { sums[l][p][i] = start; }
    }
  }
  const int at = n * a.in_n + iy * a.in_h + ix * a.in_w + vector * WORDS;
  UNROLL for (int r = 0; r < READ_LINES; ++r) {
    const bool inside = (uint)(iy + r) < (uint)a.ih;
    uint columns[GROUPED][WORDS];
    UNROLL for (int i = 0; i < GROUPED; ++i) {
      UNROLL for (int w = 0; w < WORDS; ++w) { columns[i][w] = outside[w]; }
      if (i < COLUMNS && (inside & ((uint)(ix + i) < (uint)a.iw))) {
        const int place = at + r * a.in_h + i * a.in_w;
#if WORDS == 2
        const uint2 both = *(__global const uint2*)(AT(in) + place);
        columns[i][0] = both.s0, columns[i][1] = both.s1;
#else
        columns[i][0] = AT(in)[place];
#endif
      }
    }
    UNROLL for (int g = 0; g < GROUPS; ++g) {
      UNROLL for (int w = 0; w < WORDS; ++w) {
#define COLUMN(i) columns[APART * g + i][w]
        const uint low = FN(low_pairs)(COLUMN(0), COLUMN(1));
        const uint high = FN(high_pairs)(COLUMN(0), COLUMN(1));
        const uint next_low = FN(low_pairs)(COLUMN(2), COLUMN(3));
        const uint next_high = FN(high_pairs)(COLUMN(2), COLUMN(3));
        const uint group[4] = {FN(low_halves)(low, next_low), FN(high_halves)(low, next_low),
                               FN(low_halves)(high, next_high), FN(high_halves)(high, next_high)};
        UNROLL for (int l = 0; l < LINES; ++l) {
          const int ky = r - l * STEP_Y;
          if (ky < 0 || ky >= KERNEL_SIZE) continue;
          UNROLL for (int p = 0; p < TILE_P; ++p) {
            const int shift = p * STEP_X - APART * g;
            if (shift < FIRST_SHIFT || shift > LAST_SHIFT) continue;
            const int4 weight = *(
                __global const int4*)(AT(weights) +
                                      (ky * SHIFTS + shift - FIRST_SHIFT) * a.channels + c + 4 * w);
            sums[l][p][4 * w] = DOT(group[0], weight.s0, sums[l][p][4 * w]);
            sums[l][p][4 * w + 1] = DOT(group[1], weight.s1, sums[l][p][4 * w + 1]);
            sums[l][p][4 * w + 2] = DOT(group[2], weight.s2, sums[l][p][4 * w + 2]);
            sums[l][p][4 * w + 3] = DOT(group[3], weight.s3, sums[l][p][4 * w + 3]);
          }
        }
      }
    }
  }

  UNROLL for (int l = 0; l < LINES; ++l) {
    UNROLL for (int p = 0; p < TILE_P; ++p) {
      if ((x + p < a.ow) & (y + l < a.oh)) {
        float values[VECTOR];
        UNROLL for (int i = 0; i < VECTOR; ++i) {
          values[i] = as_float(sums[l][p][i]) - 12582912.0f;
        }
        const FV v = TAIL(LOADV_PRIVATE(VECTOR, values), n, y + l, x + p, c, VECTOR);
        __global T* const to = AT(out) + n * a.out_n + (y + l) * a.out_h + (x + p) * a.out_w + c;
        STOREV_ALIGNED(STORED, VECTOR, v, to);
      }
    }
  }
}
