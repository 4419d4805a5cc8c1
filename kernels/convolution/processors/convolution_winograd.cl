// Computes 3x3 convolutions by Winograd's F(4x4, 3x3): 4x4 outputs take 36 products for each pair
// of channels, not 144. For CPUs. A work-item computes units of UNIT tiles, one after the other,
// whose transformed inputs and products stay in its core's cache. Weights are packed as [block of
// channels][36][input channel][VECTORS][VECTOR]. Defines:
//   T, IN_T    types of the output and of the input
//   BYTES      the input is bytes, where a.zero stands for 0
//   UNIT       tiles of a unit, a multiple of TILE_P
//   IN_VECTOR  input channels that are transformed at a time
//   TILE_P     tiles, and VECTORS vectors of VECTOR output channels, whose sums are in registers

typedef struct {
#include "kernels/convolution/processors/convolution_winograd_args.cl"
} FN(Args);

#define FV FLOATV(VECTOR)
#define INV FLOATV(IN_VECTOR)
#define LOAD_VECTOR CAT(LOAD_float_, VECTOR)
#define STORE_VECTOR CAT(STORE_float_, VECTOR)
#define BLOCK (VECTORS * VECTOR)
// The distance between values of one product and those of the next one: an odd number of cache
// lines, since values a power of two apart would compete for few cache sets.
#define APART(n) (((n) / 16 | 1) * 16)

// Computes B^T d for six values: to0, to1, ...
#define INPUT_TRANSFORM(d, to)                                                            \
  const INV to##0 = fma(d##2, (INV)(-5.f), fma(d##0, (INV)(4.f), d##4));                  \
  const INV to##_a = fma(d##2, (INV)(-4.f), d##4), to##_b = fma(d##1, (INV)(-4.f), d##3); \
  const INV to##1 = to##_a + to##_b, to##2 = to##_a - to##_b;                             \
  const INV to##_c = d##4 - d##2, to##_d = 2.f * (d##3 - d##1);                           \
  const INV to##3 = to##_c + to##_d, to##4 = to##_c - to##_d;                             \
  const INV to##5 = fma(d##3, (INV)(-5.f), fma(d##1, (INV)(4.f), d##5));

// Computes A^T m for six values.
#define OUTPUT_TRANSFORM(m, to)                                                                    \
  const FV to##_a = m##1 + m##2, to##_b = m##1 - m##2, to##_c = m##3 + m##4, to##_d = m##3 - m##4; \
  const FV to##0 = m##0 + to##_a + to##_c, to##1 = fma(to##_d, (FV)(2.f), to##_b),                 \
           to##2 = fma(to##_c, (FV)(4.f), to##_a), to##3 = fma(to##_d, (FV)(8.f), to##_b) + m##5;

#define SIX(M) M(0) M(1) M(2) M(3) M(4) M(5)

#if BYTES
#define VALUE(p) (LOADV(IN_T, IN_VECTOR, p) - a.zero)
#else
#define VALUE(p) LOADV(IN_T, IN_VECTOR, p)
#endif

void FN(transform_inputs)(__global const IN_T* in, __global float* to, int first, int tiles,
                          const FN(Args) a) {
  const int apart = APART(UNIT * a.in_channels);
  for (int t = 0; t < tiles; ++t) {
    const int tile = first + t;
    const int n = tile / a.image_tiles, ty = tile % a.image_tiles / a.row_tiles,
              tx = tile % a.row_tiles;
    const int iy = ty * 4 - a.ph, ix = tx * 4 - a.pw;
    for (int c = 0; c < a.in_channels; c += IN_VECTOR) {
      __global const IN_T* const from = in + n * a.in_n + c;
      INV rows[36];
      for (int r = 0; r < 6; ++r) {
        const int y = iy + r;
        __global const IN_T* const row = from + y * a.in_h;
        const int inside = (uint)y < (uint)a.ih;
#define LOAD_PIXEL(i) \
  const INV d##i =    \
      inside & ((uint)(ix + i) < (uint)a.iw) ? VALUE(row + (ix + i) * a.in_w) : (INV)(0.f);
        SIX(LOAD_PIXEL)
        INPUT_TRANSFORM(d, e)
#define KEEP_ROW(i) rows[r * 6 + i] = e##i;
        SIX(KEEP_ROW)
      }
      for (int j = 0; j < 6; ++j) {
#define COLUMN(i) const INV d##i = rows[i * 6 + j];
        SIX(COLUMN)
        INPUT_TRANSFORM(d, e)
#define STORE_VALUE(i) \
  CAT(STORE_float_, IN_VECTOR)(e##i, to + (i * 6 + j) * apart + t * a.in_channels + c);
        SIX(STORE_VALUE)
      }
    }
  }
}

#define WEIGHT_(j, k) const FV w##k = CAT(LOAD_ALIGNED_float_, VECTOR)(w + k * VECTOR);
#define FMA_(p, k) acc##p##_##k = fma((FV)(x##p), w##k, acc##p##_##k);
#define CLEAR_(p, k) FV acc##p##_##k = 0;
#define CLEAR(p) REPEAT_WITH(VECTORS, p, CLEAR_)
#define LOAD_ONE(p) const float x##p = v[p * channels + c];
#define FMA(p) REPEAT_WITH(VECTORS, p, FMA_)
#define SAVE_(p, k) STORE_VECTOR(acc##p##_##k, m + p * BLOCK + k * VECTOR);
#define SAVE(p) REPEAT_WITH(VECTORS, p, SAVE_)

// Computes 36 products of matrices: tiles x input channels by input channels x BLOCK. The results
// of missing tiles are not used.
void FN(multiply)(__global const float* values, __global const float* weights,
                  __global float* products, int tiles, int channels) {
  for (int product = 0; product < 36; ++product) {
    for (int t = 0; t < tiles; t += TILE_P) {
      __global const float* const v = values + t * channels;
      __global const float* w = weights;
      __global float* const m = products + t * BLOCK;
      REPEAT(TILE_P, CLEAR)
      for (int c = 0; c < channels; ++c) {
        REPEAT_WITH(VECTORS, 0, WEIGHT_)
        REPEAT(TILE_P, LOAD_ONE)
        REPEAT(TILE_P, FMA)
        w += BLOCK;
      }
      REPEAT(TILE_P, SAVE)
    }
    values += APART(UNIT * channels);
    weights += channels * BLOCK;
    products += APART(UNIT * BLOCK);
  }
}

// Stores the first `left` channels of v.
void FN(store)(FV v, __global T* to, int left) { STORE_FIRST(STORED, VECTOR, v, to, left); }

#define PRODUCT(i) const FV d##i = LOAD_VECTOR(m + (i * 6 + j) * APART(UNIT * BLOCK));
#define MIXED(j) const FV d##j = mixed[i * 6 + j];

WORK_GROUP(1, 1, 1)
KERNEL(IN(IN_T, in), IN(float, weights), OUT(float, scratch), OUT(T, out),
       const FN(Args) a TAIL_PARAMS) {
  __global float* const v = AT(scratch) + (int)get_group_id(0) * a.scratch;
  __global float* const products = v + 36 * APART(UNIT * a.in_channels);
  for (int unit = get_group_id(0); unit < a.units; unit += a.groups) {
    const int first = unit * UNIT, tiles = min(a.tiles - first, UNIT);
    FN(transform_inputs)(AT(in), v, first, tiles, a);
    for (int block = 0; block < a.blocks; ++block) {
      FN(multiply)
      (v, AT(weights) + block * 36 * a.in_channels * BLOCK, products, tiles, a.in_channels);
      const int vectors = min((a.out_channels - block * BLOCK + VECTOR - 1) / VECTOR, VECTORS);
      for (int t = 0; t < tiles; ++t) {
        const int tile = first + t;
        const int n = tile / a.image_tiles, y0 = tile % a.image_tiles / a.row_tiles * 4,
                  x0 = tile % a.row_tiles * 4;
        for (int k = 0; k < vectors; ++k) {
          __global const float* const m = products + t * BLOCK + k * VECTOR;
          FV mixed[24], results[16];
          for (int j = 0; j < 6; ++j) {
            SIX(PRODUCT)
            OUTPUT_TRANSFORM(d, e)
            mixed[j] = e0, mixed[6 + j] = e1, mixed[12 + j] = e2, mixed[18 + j] = e3;
          }
          for (int i = 0; i < 4; ++i) {
            SIX(MIXED)
            OUTPUT_TRANSFORM(d, e)
            results[i * 4] = e0, results[i * 4 + 1] = e1, results[i * 4 + 2] = e2,
                        results[i * 4 + 3] = e3;
          }
          const int c = block * BLOCK + k * VECTOR, channels_left = a.out_channels - c;
          const int rows = min(a.oh - y0, 4), columns = min(a.ow - x0, 4);
#pragma unroll 1
          for (int i = 0; i < rows; ++i)
#pragma unroll 1
            for (int j = 0; j < columns; ++j) {
              const FV value = TAIL(results[i * 4 + j], n, y0 + i, x0 + j, c, channels_left);
              FN(store)
              (value, AT(out) + n * a.out_n + (y0 + i) * a.out_h + (x0 + j) * a.out_w + c,
               channels_left);
            }
        }
      }
    }
  }
}
