// Arguments of recurrent.cl, for OpenCL C and C++.
int h_n, h_d, h_i, c_n, c_d, c_i, length_n;  // strides of the inputs
int all_n, all_d, all_t, all_i, last_n, last_d, last_i, cell_n, cell_d, cell_i;  // of the outputs
// Bit d of `reverse` is set if direction d runs from the end.
int steps, hidden, padded, directions, reverse;
int states, biases;  // offsets of the weights of the states, and of the biases
float clip;          // 0: no clipping
