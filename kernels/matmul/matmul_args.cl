// Arguments of matmul.cl, for OpenCL C and C++.
int m, n, k;
int size1, size2, size3;  // of batch dimensions except the outermost
int a0, a1, a2, a3, a_m, a_k;
int b0, b1, b2, b3, b_k, b_n;
int o0, o1, o2, o3, o_m;
int tiles, tiles_per_item;
