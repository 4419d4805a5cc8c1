// Direct convolution on channels-last activations by sub-groups of Intel's devices. A sub-group
// computes TILE_P neighbouring pixels x VECTORS x LANES output channels: a lane has one channel of
// each vector. The lanes read LANES input elements of a pixel at once, as a block; each element is
// then broadcast to all lanes, which a multiply-add of Intel's GPUs does by itself. An element is a
// float, a half, or four bytes, whose sums are integers, to which start_sums are added. A run of
// elements is the channels of a pixel or, if a row of the kernel reads adjacent memory and this
// leaves fewer lanes without work, such a row. Weights are packed as [group][block][run][input
// element / 4][VECTORS][LANES][4], each run padded to a multiple of four elements; zeros (or zero
// points) are read for every pixel outside the input.
// With matrix instructions (dpas) of sixteen lanes nothing is broadcast: a block is 32 bytes of a
// pixel, a row of the first operand, and an element is a lane's part of it. Weights are then packed
// as [group][block][run][block of the input][VECTORS][8][LANES] words, the columns of the second
// operand, each run padded to whole blocks.
// Defines besides T, VECTORS and TILE_P:
//   IN_T, W_T            types of the input (uchar: fours of bytes) and of an element's weights
//   BYTES                the input consists of bytes
//   MATRIX               by matrix instructions; LANES is 16, W_T int, TILE_P 1, 2, 4, 8 or 16
//   STAND_IN             computes them by shuffles, for tests on any device with sub-groups
//   LANES, ROWS, SLICES  work-group: the lanes of a sub-group x tiles x slices of the runs, whose
//                        sums are added in local memory
//   READS                blocks of a pixel that are read at once: 1, 2 or 4; runs are whole steps
//                        unless it is 1
//   BLOCKS               pixels are aligned for reads of blocks
//   GATHERED             instead of blocks, each lane reads 16 bytes of one of the tile's pixels,
//   so that a
//                        message reads parts of all. TILE_P divides LANES, READS is how many
//                        messages are sent at once (1, 2 or 4), runs are whole steps of up to 32
//                        elements, and there is no third dimension
//   BLOCKS_2D            with matrix instructions: a message reads two blocks of each of eight
//                        pixels. READS is 2 or 4, TILE_P 8 or 16, and a tile lies in one row
//                        of the output. Pixels outside the input are zeros, and runs are padded
//                        to whole steps
//   MERGED               a run is a row of the kernel
//   REST                 elements at the end of a run that do not fill a block, rounded up to four
//   POINTWISE            1x1; input and output are each one long row of pixels
//   FLAT_TAIL            the tail's operands are long rows of pixels as well
//   DEPTH                there is a third spatial dimension

#if BYTES
#define RESULT(v) convert_float(v)
#else
#define RESULT(v) v
#endif
#include "kernels/common/tile.cl"
#if GATHERED && !POINTWISE
// Keeps the offsets of a lane's pixels, which take fewer registers than their positions.
#undef PIXEL_OFFSET
#define PIXEL_OFFSET(p) offset##p
#endif

// Read N elements for each lane, LANES apart; halves become floats.
#define READ_float_1(p) as_float(intel_sub_group_block_read((__global const uint*)(p)))
#define READ_float_2(p) as_float2(intel_sub_group_block_read2((__global const uint*)(p)))
#define READ_half_1(p) \
  convert_float(as_half(intel_sub_group_block_read_us((__global const ushort*)(p))))
#define READ_half_2(p) \
  convert_float2(as_half2(intel_sub_group_block_read_us2((__global const ushort*)(p))))
#define READ_uchar_1(p) intel_sub_group_block_read((__global const uint*)(p))
#define READ_uchar_2(p) intel_sub_group_block_read2((__global const uint*)(p))
#define READ_uint_1(p) READ_uchar_1(p)
#define READ_uint_2(p) READ_uchar_2(p)
#define READ_uint_4(p) intel_sub_group_block_read4((__global const uint*)(p))
#define READ_ushort_1(p) intel_sub_group_block_read_us((__global const ushort*)(p))
#define READ_ushort_2(p) intel_sub_group_block_read_us2((__global const ushort*)(p))
#define READ_ushort_4(p) intel_sub_group_block_read_us4((__global const ushort*)(p))
#define READ_int_8(p) as_int8(intel_sub_group_block_read8((__global const uint*)(p)))
#define READ(N, type, p) CAT(CAT(READ_, type), CAT(_, N))(p)

#if MATRIX
#define ELEMENT ushort
#define BLOCK_T ELEMENT
#if BYTES
#define SUM int
#define UNIT 2  // input channels in an element
#else
#define SUM float
#define UNIT 1
#endif
#define LOAD(p) (*(__global const ELEMENT*)(p))
#elif BYTES
#define ELEMENT uint
#define BLOCK_T IN_T
#define SUM int
#define UNIT 4
#define LOAD(p) (*(__global const uint*)(p))
#include "kernels/common/dot4.cl"
#define ADD(x, w, sum) FN(dot4)(x, w, sum)
#else
#define ELEMENT float
#define BLOCK_T IN_T
#define SUM float
#define UNIT 1
#define LOAD(p) LOADV(IN_T, 1, p)
#define ADD(x, w, sum) fma(x, w, sum)
#endif

#define SUMS(N) CAT(SUM, N)

#if MATRIX
#include "kernels/common/sub_group_rows.cl"
#else
// Adds the products of four elements of every pixel, j to j + 3 of a step, and their rows of
// weights.
#if GATHERED
#define BROADCAST(p, r)                                                                       \
  const ELEMENT b##p =                                                                        \
      intel_sub_group_shuffle(values[(j + r) / (PARTS * VALUES) * VALUES + (j + r) % VALUES], \
                              (j + r) / VALUES % PARTS * TILE_P + p);
#else
#define BROADCAST(p, r) const ELEMENT b##p = intel_sub_group_shuffle(x##p, j + r);
#endif
#define BROADCAST0(p) BROADCAST(p, 0)
#define BROADCAST1(p) BROADCAST(p, 1)
#define BROADCAST2(p) BROADCAST(p, 2)
#define BROADCAST3(p) BROADCAST(p, 3)
#define ADD_(p, k) acc##p##_##k = ADD(b##p, row[k], acc##p##_##k);
#define ADD_PIXEL(p) REPEAT_WITH(VECTORS, p, ADD_)
#define ROW(r)                                 \
  {                                            \
    const SUM* const row = rows + r * VECTORS; \
    REPEAT(TILE_P, BROADCAST##r)               \
    REPEAT(TILE_P, ADD_PIXEL)                  \
  }
// Reads a lane's weights of four elements at once. A message can bring up to 16 bytes for each
// lane, but only 128 bytes of a block.
#define FOUR_float(p) vload4(0, p)
#define FOUR_int(p) vload4(0, p)
#define FOUR_half(p) vload_half4(0, p)
#define READ_VECTOR(k)                                          \
  {                                                             \
    const SUMS(4) v = CAT(FOUR_, W_T)(four + k * 4 * LANES);    \
    rows[k] = v.s0, rows[VECTORS + k] = v.s1;                   \
    rows[2 * VECTORS + k] = v.s2, rows[3 * VECTORS + k] = v.s3; \
  }
#define FOUR(from)                                                                \
  {                                                                               \
    const int j = from;                                                           \
    __global const W_T* const four =                                              \
        (__global const W_T*)((__global const char*)AT(weights) + w) + j * BLOCK; \
    SUM rows[4 * VECTORS];                                                        \
    REPEAT(VECTORS, READ_VECTOR)                                                  \
    ROW(0) ROW(1) ROW(2) ROW(3)                                                   \
  }
// Add up the first n elements of a step. They are written without a loop: Intel's compiler may
// leave it as a loop, with broadcasts from lanes that are not constant. On a CPU, where only tests
// run them, the compiler would take seconds for the long code.
#ifdef ON_CPU
#define PART(n) \
  for (int from = 0; from < (n); from += 4) FOUR(from)
#else
#define PART(n)          \
  if ((n) > 0) FOUR(0)   \
  if ((n) > 4) FOUR(4)   \
  if ((n) > 8) FOUR(8)   \
  if ((n) > 12) FOUR(12) \
  if ((n) > 16) FOUR(16) \
  if ((n) > 20) FOUR(20) \
  if ((n) > 24) FOUR(24) \
  if ((n) > 28) FOUR(28)
#endif

#define STEP(LOAD, n)    \
  {                      \
    REPEAT(TILE_P, LOAD) \
    PART(n)              \
    w += WEIGHTS(n);     \
  }
#define WEIGHTS(n) ((n) * (BLOCK * (int)sizeof(W_T)))  // in bytes
#define WEIGHTS_OF_LANE (4 * (int)sizeof(W_T) * lane)
#endif

#if GATHERED
// Reads the input elements of a step: VALUES of each of PARTS parts of every pixel, READS times.
// `part` is the part that this lane reads.
#define PARTS (LANES / TILE_P)
#define VALUES (16 / (UNIT * (int)sizeof(IN_T)))
#define STRIDE (READS * PARTS * VALUES)
#if PARTS == 1
#define PIXEL_OF_LANE lane
#define PART_OF_LANE 0
#else
#define PIXEL_OF_LANE (lane % TILE_P)
#define PART_OF_LANE (lane / TILE_P)
#endif
#define VALUES_float(words) *(float4*)to = as_float4(words)
#define VALUES_half(words) *(float8*)to = convert_float8(as_half8(words))
#define VALUES_uchar(words) *(uint4*)to = words
#define READ_PARTS(m, words)                                                                   \
  {                                                                                            \
    const uint4 v = vload4(0, (__global const uint*)(part + UNIT * (i + m * PARTS * VALUES))); \
    ELEMENT* const to = values + m * VALUES;                                                   \
    CAT(VALUES_, IN_T)(words);                                                                 \
  }
#define LOAD_STEP(m) READ_PARTS(m, v)
#define LOAD_BORDER(m) READ_PARTS(m, valid ? v : (uint4)outside)
#define STEP_WHOLE(LOAD)            \
  {                                 \
    ELEMENT values[READS * VALUES]; \
    REPEAT(READS, LOAD)             \
    PART(STRIDE)                    \
    w += WEIGHTS(STRIDE);           \
  }
#else
// Reads the input elements of a step, for every pixel at r0, r1, ...
#define STRIDE (READS * LANES)
#if BLOCKS_2D
#define LOADS PRODUCTS  // of eight pixels each
#define READ_ROWS(g, from) FN(read_rows)(surface, i + from * LANES, top + 8 * g)
#if READS == 2
#define LOAD_STEP(g) const ushort16 v##g = READ_ROWS(g, 0);
#else
#define LOAD_STEP(g) const ushort16 v##g = READ_ROWS(g, 0), w##g = READ_ROWS(g, 2);
#endif
#define X0(g) const ushort8 x##g = v##g.lo;
#define X1(g) const ushort8 x##g = v##g.hi;
#define X2(g) const ushort8 x##g = w##g.lo;
#define X3(g) const ushort8 x##g = w##g.hi;
#else
#define LOADS TILE_P
#define LOAD_REST(p) const ELEMENT x##p = i + lane < elements ? LOAD(r##p + UNIT * (i + lane)) : 0;
#if READS > 1
#define LOAD_STEP(p) const CAT(ELEMENT, READS) v##p = READ(READS, BLOCK_T, r##p + UNIT * i);
#define X0(p) const ELEMENT x##p = v##p.s0;
#define X1(p) const ELEMENT x##p = v##p.s1;
#define X2(p) const ELEMENT x##p = v##p.s2;
#define X3(p) const ELEMENT x##p = v##p.s3;
#elif BLOCKS
#define LOAD_STEP(p) const ELEMENT x##p = READ(1, BLOCK_T, r##p + UNIT * i);
#else
#define LOAD_STEP(p) const ELEMENT x##p = LOAD(r##p + UNIT * (i + lane));
#endif
#endif
#if READS == 1
#define STEP_WHOLE(LOAD) STEP(LOAD, LANES)
#else
#if READS == 2
#define STEPS STEP(X0, LANES) STEP(X1, LANES)
#else
#define STEPS STEP(X0, LANES) STEP(X1, LANES) STEP(X2, LANES) STEP(X3, LANES)
#endif
#define STEP_WHOLE(LOAD) \
  { REPEAT(LOADS, LOAD) STEPS }
#endif
#endif

#include "kernels/common/sub_group_runs.cl"

#if POINTWISE
#define ZEROS
#else
#define ZEROS IN(IN_T, zeros),
#endif

#if BYTES
#define START_SUMS IN(int, start_sums),
#define START(k) AT(start_sums)[BLOCK_NUMBER * BLOCK + (k)*LANES + lane]
#else
#define START_SUMS
#define START(k) 0
#endif

WORK_GROUP(LANES, ROWS, SLICES)
__attribute__((intel_reqd_sub_group_size(LANES)))
KERNEL(IN(IN_T, in), IN(W_T, weights), ZEROS START_SUMS OUT(T, out), const FN(Args) a TAIL_PARAMS) {
  const int lane = get_sub_group_local_id();
  // Broadcasts, so that the compiler knows that addresses and branches are the same in all lanes.
  const int member = intel_sub_group_shuffle((int)get_sub_group_id(), 0);
  const int first = ((int)get_group_id(1) * ROWS + member % ROWS) * a.tiles_per_item;
#if SLICES > 1
  // Tiles past the end repeat the last pixel and store nothing, because all work-items of a group
  // must pass the barriers equally often.
  const int last = first + a.tiles_per_item;
  const int slice = member / ROWS;
  SHARED(float, sums, SLICES* LANES* ROWS* TILE_P* VECTORS* VECTOR);
#else
  const int last = min(first + a.tiles_per_item, a.tiles);
#endif
  const int group = BLOCK_NUMBER / a.blocks;
  const int lane_c = (BLOCK_NUMBER - group * a.blocks) * BLOCK + lane;
  __global const IN_T* const start = AT(in) + group * a.in_channels;
  // Finds the beginning of the weights for this work-group's block of channels.
  const int block = BLOCK_NUMBER * WEIGHTS(a.depth) + WEIGHTS_OF_LANE;
#if !POINTWISE && !BLOCKS_2D && !GATHERED
#include "kernels/common/tile_start.cl"
#endif
  for (int tile = first; tile < last; ++tile) {
#if BLOCKS_2D && !POINTWISE
    const int tiles_of_row = (a.ow + TILE_P - 1) / TILE_P, place = min(tile, a.tiles - 1);
    const int line = place / tiles_of_row, n = line / a.oh, y = line - n * a.oh;
    const int x = (place - line * tiles_of_row) * TILE_P, left = tile < a.tiles ? a.ow - x : 0;
#define PLACE_IN_ROW(p) const int n##p = n, y##p = y, x##p = x + p;
    REPEAT(TILE_P, PLACE_IN_ROW)
#else
    const int left = a.pixels - tile * TILE_P;
#endif
#if !MATRIX
#define BEGIN_(p, k) SUM acc##p##_##k = 0;
#define BEGIN(p) REPEAT_WITH(VECTORS, p, BEGIN_)
    REPEAT(TILE_P, BEGIN)
#else
    BEGIN_PRODUCTS
#endif
    int w = block;

#if BLOCKS_2D && POINTWISE
    const FN(Surface) surface = SURFACE(start, a.pixels);
    const int top = tile * TILE_P;
    RUN(a.in_channels / UNIT, LOAD_STEP, )
#elif BLOCKS_2D
    for (int ky = 0; ky < a.kh; ++ky) {
      const int iy = y * a.sh - a.ph + ky * a.dh;
      if ((uint)iy < (uint)a.ih) {
        const FN(Surface) surface = SURFACE(start + (n * a.in_n + iy * a.in_h), a.iw);
        for (int kx = 0; kx < a.kw; ++kx) {
          const int top = x - a.pw + kx * a.dw;
          RUN(a.in_channels / UNIT, LOAD_STEP, )
        }
      } else {
        w += a.kw * PADDED(a.in_channels / UNIT);
      }
    }
#elif GATHERED
    // Pixels past the end repeat the last one and are not stored.
    const int pixel = min(tile * TILE_P + PIXEL_OF_LANE, a.pixels - 1);
    const int first_value = PART_OF_LANE * (UNIT * VALUES);
#if POINTWISE
    __global const IN_T* const part = start + (pixel * a.in_w + first_value);
    RUN(a.in_channels / UNIT, LOAD_STEP, )
#else
    const int line = pixel / a.ow, x = pixel - line * a.ow, n = line / a.oh, y = line - n * a.oh;
    const int offset = n * a.out_n + y * a.out_h + x * a.out_w;
    const int iy = y * a.sh - a.ph, ix = x * a.sw - a.pw;
    const int at = n * a.in_n + iy * a.in_h + ix * a.in_w + first_value;
#define PLACE_OF_LANE(p)                                                                \
  const int n##p = intel_sub_group_shuffle(n, p), y##p = intel_sub_group_shuffle(y, p), \
            x##p = intel_sub_group_shuffle(x, p), offset##p = intel_sub_group_shuffle(offset, p);
    REPEAT(TILE_P, PLACE_OF_LANE)
    if (sub_group_all((iy >= 0) & (ix >= 0) & (iy < a.ih - (a.kh - 1) * a.dh) &
                      (ix < a.iw - (a.kw - 1) * a.dw))) {
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          __global const IN_T* const part =
              start + (at + (ky * a.dh * a.in_h + kx * a.dw * a.in_w));
          RUN(a.in_channels / UNIT, LOAD_STEP, )
        }
    } else {
      const uint outside = *(__global const uint*)AT(zeros);
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          const bool valid = VALID();  // for this lane's pixel
          __global const IN_T* const part =
              start + (valid ? at + (ky * a.dh * a.in_h + kx * a.dw * a.in_w) : 0);
          if (BYTES || sub_group_any(valid))
            RUN(a.in_channels / UNIT, LOAD_BORDER, )
          else
            w += PADDED(a.in_channels / UNIT);
        }
    }
#endif
#elif POINTWISE
    // Pixels past the end repeat the last one and are not stored.
#define POINT(p) \
  __global const IN_T* const r##p = start + min(tile * TILE_P + p, a.pixels - 1) * a.in_w;
    REPEAT(TILE_P, POINT)
    RUN(a.in_channels / UNIT, LOAD_STEP, LOAD_REST)
#else
    int inside = 1;
    REPEAT(TILE_P, PLACE)
    if (inside) {
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < runs; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
#define INNER(p) __global const IN_T* const r##p = start + (at##p + tap);
          REPEAT(TILE_P, INNER)
          RUN(run / UNIT, LOAD_STEP, LOAD_REST)
        }
    } else {
#if MERGED
      // Reads zeros before and past the row of the input, and for rows outside of it.
#define COLUMNS(p)                                           \
  const int from##p = max(-ix##p, 0) * a.in_channels / UNIT; \
  const int to##p = min(a.iw - ix##p, a.kw) * a.in_channels / UNIT;
#define ACROSS(p)                                                            \
  const bool valid##p = (uint)(iy##p + ky * a.dh) < (uint)a.ih VALID_Z(p);   \
  const ELEMENT x##p = valid##p & (i + lane >= from##p) & (i + lane < to##p) \
                           ? LOAD(start + (at##p + tap) + UNIT * (i + lane)) \
                           : outside;
      const ELEMENT outside = LOAD(AT(zeros));
      REPEAT(TILE_P, COLUMNS)
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky) {
        const int tap = ky * a.dh * a.in_h TAP_Z;
        RUN(run / UNIT, ACROSS, ACROSS)
      }
#else
      LOOP_Z
      for (int ky = 0; ky < a.kh; ++ky)
        for (int kx = 0; kx < a.kw; ++kx) {
          const int tap = ky * a.dh * a.in_h + kx * a.dw * a.in_w TAP_Z;
          int any = BYTES;  // zero points outside of the input count as well
#define BORDER(p)                                                                 \
  const int valid##p = VALID(p);                                                  \
  __global const IN_T* const r##p = valid##p ? start + (at##p + tap) : AT(zeros); \
  any |= valid##p;
          REPEAT(TILE_P, BORDER)
          if (any)
            RUN(a.in_channels / UNIT, LOAD_STEP, LOAD_REST)
          else
            w += PADDED(a.in_channels / UNIT);
        }
#endif
    }
#endif

#if MATRIX
    REPEAT(TILE_P, END)
#elif BYTES
// Adds START at the end: if sums begin with one value, Intel's compiler makes copies in the loop.
#define END_(p, k) acc##p##_##k += START(k);
#define END(p) REPEAT_WITH(VECTORS, p, END_)
    REPEAT(TILE_P, END)
#endif
#if SLICES > 1
#include "kernels/common/tile_slices.cl"
#else
#include "kernels/common/tile_store.cl"
#endif
  }
}
