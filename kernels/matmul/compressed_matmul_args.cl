// Arguments of compressed_matmul.cl, for OpenCL C and C++.
int n, k, m;         // columns, products of a sum, rows of all matrices
int rows, slices_h;  // rows of a matrix, matrices of an outer batch
int a_n, a_h, a_m, a_k, o_n, o_h, o_m;
int runs, run_words, runs_a_scale;  // runs of words with one scale; runs of each scale
int tiles, tiles_per_item;
