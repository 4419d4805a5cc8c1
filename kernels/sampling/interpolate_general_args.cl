// Arguments of interpolate_general.cl, for OpenCL C and C++.
int size[5], in[5], out[5];        // of the output; strides
int start[5], weight[5], taps[5];  // offsets of the tables; lengths
int n, h, w, c;                    // the numbers of these dimensions, for the tail; -1: none
int elements;
