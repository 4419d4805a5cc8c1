// Arguments of lrn.cl, for OpenCL C and C++.
int size_c, size_w, size_h, size_n;
int in_c, in_w, in_h, in_n, out_c, out_w, out_h, out_n;  // strides
int near_c, near_w, near_h, near_n;                      // how far the sum reaches to either side
int vectors, items;                                      // vectors along c; vectors of all loops
float alpha, beta, bias;
