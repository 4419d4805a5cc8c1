// Divides the stores of a tile between the slices, each of which takes some of the pixels.
#define SPILL_(p, k) STOREV(float, VECTOR, acc##p##_##k, own + (p * VECTORS + k) * VECTOR);
#define SPILL(p) REPEAT_WITH(VECTORS, p, SPILL_)
#define GATHER_(p, k)                                                    \
  acc##p##_##k = LOADV(float, VECTOR, all + (p * VECTORS + k) * VECTOR); \
  for (int i = 1; i < SLICES; ++i)                                       \
    acc##p##_##k += LOADV(float, VECTOR,                                 \
                          all + (i * LANES * ROWS * TILE_P * VECTORS + p * VECTORS + k) * VECTOR);
#define STORE(p)                         \
  if (p < left && p % SLICES == slice) { \
    REPEAT_WITH(VECTORS, p, GATHER_)     \
    REPEAT_WITH(VECTORS, p, STORE_)      \
  }
const int item = get_local_id(1) * get_local_size(0) + get_local_id(0);
__local float* const all = sums + item * (TILE_P * VECTORS * VECTOR);
__local float* const own = all + slice * (LANES * ROWS * TILE_P * VECTORS * VECTOR);
REPEAT(TILE_P, SPILL)
barrier(CLK_LOCAL_MEM_FENCE);
REPEAT(TILE_P, STORE)
if (tile + 1 < last) barrier(CLK_LOCAL_MEM_FENCE);
