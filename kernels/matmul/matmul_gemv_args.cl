// Arguments of matmul_gemv.cl, for OpenCL C and C++.
int n, k, columns;  // columns: of the packed weights
int a_n, a_h, a_m, o_n, o_h, o_m;
int rows, slices_h;  // rows of a matrix, matrices of an outer batch
