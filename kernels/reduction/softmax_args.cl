// Arguments of softmax.cl, for OpenCL C and C++.
int axis, in_axis, out_axis;     // size and strides
int inner, in_inner, out_inner;  // ALONG 0: the rows of a vector; ALONG 1: one more loop
int vectors;                     // of the inner dimension
int size[4], in[4], out[4];      // all other loops, innermost first
// Number of vectors of rows, and of those that one work-group row processes.
int items, items_per_group;
