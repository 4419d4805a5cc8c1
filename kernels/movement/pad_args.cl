// Arguments of pad.cl, for OpenCL C and C++.
// Sizes of output and input, pads at the beginning, strides of input and output.
int size[5], in_size[5], begin[5], in[5], out[5];
int vectors, runs, items, run;
int fill_low, fill_high;  // bits of the element
int mode;                 // 0 constant, 1 edge, 2 reflect, 3 symmetric
