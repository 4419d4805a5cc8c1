// Defines dot4(x, w, sum): sum + the dot product of the four unsigned bytes of x and the four
// signed bytes of w. Intel's compiler translates this form to one instruction (dp4a) if the device
// has it; for the function of cl_khr_integer_dot_product, some versions make a call.
inline int FN(dot4)(uint x, int w, int sum) {
  const int4 a = convert_int4(as_uchar4(x)), b = convert_int4(as_char4(w));
  return sum + a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3;
}
