// Reductions of vectors of V floats, and their element numbers: TOTAL(V, v), GREATEST(V, v),
// COUNTED(V).
#define TOTAL_1(v) (v)
#define GREATEST_1(v) (v)
#define COUNTED_1 0
float TOTAL_2(float2 v) { return v.x + v.y; }
float GREATEST_2(float2 v) { return fmax(v.x, v.y); }
#define COUNTED_2 (int2)(0, 1)
float TOTAL_4(float4 v) { return TOTAL_2(v.lo + v.hi); }
float GREATEST_4(float4 v) { return GREATEST_2(fmax(v.lo, v.hi)); }
#define COUNTED_4 (int4)(0, 1, 2, 3)
float TOTAL_8(float8 v) { return TOTAL_4(v.lo + v.hi); }
float GREATEST_8(float8 v) { return GREATEST_4(fmax(v.lo, v.hi)); }
#define COUNTED_8 (int8)(0, 1, 2, 3, 4, 5, 6, 7)
float TOTAL_16(float16 v) { return TOTAL_8(v.lo + v.hi); }
float GREATEST_16(float16 v) { return GREATEST_8(fmax(v.lo, v.hi)); }
#define COUNTED_16 (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define TOTAL(V, v) CAT(TOTAL_, V)(v)
#define GREATEST(V, v) CAT(GREATEST_, V)(v)
#define COUNTED(V) CAT(COUNTED_, V)
