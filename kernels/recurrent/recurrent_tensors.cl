// The tensor parameters that recurrent.cl and recurrent_step.cl share, after the gates.
IN(H, first_h),
#if KIND == 1
    IN(C, first_c),
#endif
#if SEQUENCE
    IN(LENGTH, lengths),
#endif
    IN(float, weights),
#if SEQUENCE
    OUT(T, all),
#endif
    OUT(T, last_h),
#if KIND == 1
    OUT(T, last_c),
#endif
