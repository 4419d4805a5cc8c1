// Arguments of pooling_general.cl, for OpenCL C and C++.
int in_n, in_c, in_d, in_h, in_w, out_n, out_c, out_d, out_h, out_w;  // strides
int index_n, index_c, index_d, index_h, index_w;
#include "kernels/common/geometry_args.cl"
int end_d, end_h, end_w;  // sizes with the end pads
int channels;
int index_range;  // indices are taken modulo this
int elements;
