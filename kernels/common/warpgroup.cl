// Code shared by convolutions by warpgroup matrix instructions: tiles in local memory, copies of
// pixels, and the sums of a work-item. Defines are those of convolution_wgmma.cl.
#define FV FLOATV(VECTOR)
#define ITEMS (128 * WARPGROUPS)  // work-items of a slice
#define PIXELS (64 * WARPGROUPS)  // pixels of a tile
#define VECTORS (COLUMNS / (4 * VECTOR))
// The place of a chunk in swizzled rows of 2, 4 or 8 chunks. Its number in the row is combined, by exclusive
// or, with the number of the 128 bytes in which the row lies, modulo CHUNKS.
#define SWIZZLED(row, chunk) ((row)*CHUNKS + ((chunk) ^ ((row)*CHUNKS >> 3 & (CHUNKS - 1))))
#define SWIZZLE (CHUNKS == 8 ? 1 : CHUNKS == 4 ? 2 : 3)  // its number in a descriptor

#if BYTES
#define SUM int
#define START_SUMS IN(int, start_sums),
#define ELEMENTS 16  // elements of a chunk
#else
#define SUM float
#define START_SUMS
#if FLOAT8
#define ELEMENTS 16
#else
#define ELEMENTS 8
#endif
#endif

// Declares `tiles` with LOCAL_BYTES bytes, and limits registers. OpenCL C can declare at most 48 KiB, so
// that the marked PTX is patched.
#if WGMMA_PTX
#define DECLARE_TILES                                       \
  __local uint4 tiles[1024] __attribute__((aligned(1024))); \
  asm volatile("//#local " TEXT(LOCAL_BYTES));              \
  LIMIT_REGISTERS;
#endif

// A barrier of the work-items of a slice. Without PTX it is a barrier of the whole work-group,
// whose slices have the same number of steps.
#if WGMMA_PTX && SLICES > 1
#define SLICE_BARRIER asm volatile("bar.sync %0, %1;" ::"r"(1 + slice), "r"(ITEMS) : "memory")
#else
#define SLICE_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#endif

#if WGMMA_PTX
#define UNROLL _Pragma("unroll")
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
// Copies 16 bytes, or zeros, from global to local memory. They stay in the L1 cache for other taps.
inline void FN(copy_pixels)(__local uint4* to, __global const uint4* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(size_t)to), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
#define COMMIT_COPIES asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT(n) WAIT_(n)
#define PUBLISH asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
// Describe a tile of rows of 32, 64 or 128 bytes, swizzled, in groups of 8 rows that begin `apart` rows after
// each other, or follow each other.
inline ulong FN(lines_apart)(__local const uint4* tile, int apart) {
  return (ulong)(((uint)(size_t)tile >> 4) & 0x3fff) | (ulong)1 << 16 |
         (ulong)(apart * CHUNKS) << 32 | (ulong)SWIZZLE << 62;
}
inline ulong FN(descriptor)(__local const uint4* tile) { return FN(lines_apart)(tile, 8); }
#else
#define UNROLL
#define FINISH(sums)
inline void FN(copy_pixels)(__local uint4* to, __global const uint4* from, bool inside) {
  *to = inside ? *from : (uint4)(0);
}
#define COMMIT_COPIES
#define WAIT(n)
#define PUBLISH
// Returns the product of elements i of a chunk in two rows.
#if BYTES
inline int FN(product)(__local const uint4* a, __local const uint4* b, int i) {
  return ((__local const uchar*)a)[i] * ((__local const char*)b)[i];
}
#elif FLOAT8
inline float FN(product)(__local const uint4* a, __local const uint4* b, int i) {
  return float_of_e4m3(((__local const uchar*)a)[i]) * float_of_e4m3(((__local const uchar*)b)[i]);
}
#else
inline float FN(product)(__local const uint4* a, __local const uint4* b, int i) {
  return vload_half(i, (__local const half*)a) * vload_half(i, (__local const half*)b);
}
#endif
#endif

// Declares the sums of a work-item: sums[j * 4 + k] belongs to pixel lane / 4 + k / 2 * 8 of the
// warp and to the channel of column j * 8 + lane % 4 * 2 + k % 2.
#if BYTES && defined(START_SUM)
#define START(i) slice > 0 ? 0 : START_SUM  // all sums begin with the same number
#elif BYTES
#define START(i)                                                               \
  slice > 0 ? 0                                                                \
            : AT(start_sums)[first_channel + i / (2 * VECTOR) * (4 * VECTOR) + \
                             i / 4 % (VECTOR / 2) * 2 + i % 2]
#else
#define START(i) 0
#endif
#define DECLARE_SUMS                                                   \
  const int first_channel = block * COLUMNS + lane % 4 * VECTOR;       \
  SUM sums[COLUMNS / 2];                                               \
  UNROLL for (int i = 0; i < COLUMNS / 2; ++i) { sums[i] = START(i); } \
  DECLARE_TOTALS

// Keeps sums short: ADD_PARTIAL, after each step, moves what PARTIAL_STEPS steps added up to a total, and
// ADD_TOTALS, after all steps, gives the whole sums.
#ifdef PARTIAL_STEPS
#define DECLARE_TOTALS     \
  SUM totals[COLUMNS / 2]; \
  int partial = 0;         \
  UNROLL for (int i = 0; i < COLUMNS / 2; ++i) { totals[i] = 0; }
#define ADD_PARTIAL                                \
  if (++partial == PARTIAL_STEPS) {                \
    FINISH(sums);                                  \
    UNROLL for (int i = 0; i < COLUMNS / 2; ++i) { \
      totals[i] += sums[i];                        \
      sums[i] = 0;                                 \
    }                                              \
    partial = 0;                                   \
  }
#define ADD_TOTALS \
  UNROLL for (int i = 0; i < COLUMNS / 2; ++i) { sums[i] += totals[i]; }
#else
#define DECLARE_TOTALS
#define ADD_PARTIAL
#define ADD_TOTALS
#endif

// Adds the sums of the other slices to those of the first one, in the tiles' local memory; the
// other slices are finished then.
#if SLICES > 1
#define ADD_SLICES                                                 \
  barrier(CLK_LOCAL_MEM_FENCE);                                    \
  __local SUM* const others = (__local SUM*)tiles + item;          \
  if (slice > 0) {                                                 \
    UNROLL for (int i = 0; i < COLUMNS / 2; ++i) {                 \
      others[((slice - 1) * (COLUMNS / 2) + i) * ITEMS] = sums[i]; \
    }                                                              \
  }                                                                \
  barrier(CLK_LOCAL_MEM_FENCE);                                    \
  if (slice > 0) return;                                           \
  for (int s = 0; s < SLICES - 1; ++s) {                           \
    UNROLL for (int i = 0; i < COLUMNS / 2; ++i) {                 \
      sums[i] += others[(s * (COLUMNS / 2) + i) * ITEMS];          \
    }                                                              \
  }
#else
#define ADD_SLICES
#endif

// Copies the pixel at a place of the input, or what stands for it outside of the input. The
// products with zero points are part of the sums; those past the last tap have weights of 0.
#define OUTSIDE AT(weights) + (size_t)a.blocks*(SLICES * a.steps) * (COLUMNS * CHUNKS)
#if BYTES
#define COPY_PIXELS(to, place, inside) \
  FN(copy_pixels)(to, inside ? AT(in) + (place) : OUTSIDE, true)
#else
#define COPY_PIXELS(to, place, inside) FN(copy_pixels)(to, AT(in) + (inside ? place : 0), inside)
#endif

#if !WGMMA_PTX
// Adds the products of a step: of all columns with the rows of pixels from `first` on. Row r of the matrix
// is ROW_PLACE(r) rows behind the first one.
#ifndef ROW_PLACE
#define ROW_PLACE(r) (r)
#endif
#define MULTIPLY_PLAINLY(pixels, first, columns)                                   \
  for (int i = 0; i < COLUMNS / 2; ++i) {                                          \
    const int r = (first) + ROW_PLACE(warp * 16 + lane / 4 + i % 4 / 2 * 8);       \
    const int c = i / 4 * 8 + lane % 4 * 2 + i % 2;                                \
    for (int k = 0; k < CHUNKS * ELEMENTS; ++k)                                    \
      sums[i] += FN(product)((pixels) + SWIZZLED(r, k / ELEMENTS),                 \
                             (columns) + SWIZZLED(c, k / ELEMENTS), k % ELEMENTS); \
  }
#endif
