// Wraps the matrix instruction (dpas) of the sub-groups of Intel's GPUs. MULTIPLY(rows, columns,
// sums) adds the products of up to eight rows of 32 bytes by as many columns as there are lanes. A
// lane has its column as eight words, its sums, and of each row a word, if there are eight lanes
// (DG2, Meteor Lake, Arrow Lake), or half of one, if there are sixteen (Ponte Vecchio and from
// Lunar Lake on). With eight lanes the rows are weights and the columns are pixels, with sixteen it
// is the other way around. Defines of a kernel that includes it:
//   MATRIX_LANES, MATRIX_ROWS  1, 2, 4 or 8 rows; 8 with eight lanes
//   SUM, BYTES                 int for bytes, of which pixels have unsigned ones, else float for f16
//   STAND_IN                   by shuffles, for tests on any device with sub-groups
#define SUMS_T CAT(SUM, MATRIX_ROWS)
#if MATRIX_LANES == 8
#define ROWS_T int8
#define PART uint
#if BYTES
#define COLUMNS_T uint8
#define MAD intel_sub_group_i8_u8_matrix_mad_k32
#else
#define COLUMNS_T int8
#define MAD intel_sub_group_f16_f16_matrix_mad_k16
#endif
#else
#define COLUMNS_T int8
#define PART ushort
#if BYTES
#define ROWS_T CAT(ushort, MATRIX_ROWS)
#define MAD intel_sub_group_u8_i8_matrix_mad_k32
#else
#define ROWS_T CAT(short, MATRIX_ROWS)
#define MAD intel_sub_group_f16_f16_matrix_mad_k16
#endif
#endif

#if STAND_IN
inline SUM FN(word)(uint pixel, uint weight) {
#if BYTES
  const int4 x = convert_int4(as_uchar4(pixel)), w = convert_int4(as_char4(weight));
  return x.s0 * w.s0 + x.s1 * w.s1 + x.s2 * w.s2 + x.s3 * w.s3;
#else
  const float2 x = vload_half2(0, (const half*)&pixel), w = vload_half2(0, (const half*)&weight);
  return x.s0 * w.s0 + x.s1 * w.s1;
#endif
}
inline SUMS_T FN(multiply)(ROWS_T rows, COLUMNS_T columns, SUMS_T sums) {
  PART parts[MATRIX_ROWS];
  uint column[8];
  SUM results[MATRIX_ROWS];
  *(ROWS_T*)parts = rows;
  *(COLUMNS_T*)column = columns;
  *(SUMS_T*)results = sums;
  for (int row = 0; row < MATRIX_ROWS; ++row)
    for (int i = 0; i < 8; ++i) {
#if MATRIX_LANES == 8
      results[row] += FN(word)(column[i], intel_sub_group_shuffle(parts[row], i));
#else
      const uint word = intel_sub_group_shuffle((uint)parts[row], 2 * i) |
                        intel_sub_group_shuffle((uint)parts[row], 2 * i + 1) << 16;
      results[row] += FN(word)(word, column[i]);
#endif
    }
  return *(SUMS_T*)results;
}
#define MULTIPLY(rows, columns, sums) FN(multiply)(rows, columns, sums)
#else
#ifndef cl_intel_subgroup_matrix_multiply_accumulate  // An older compiler does not declare it.
__attribute__((overloadable)) SUMS_T MAD(ROWS_T, COLUMNS_T, SUMS_T);
#endif
#define MULTIPLY(rows, columns, sums) MAD(rows, columns, sums)
#endif
