// Arguments of elementwise.cl, for OpenCL C and C++: sizes and strides of the loops, and how many
// elements and rows a work-item computes.
int size[DIMS], out[DIMS], in[N][DIMS];
int run, rows;
