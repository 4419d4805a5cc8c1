// Arguments of pooling_wide.cl, for OpenCL C and C++.
int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int end_d, end_h, end_w;  // sizes with the end pads
int channels, vectors;
int pixels, pixels_per_group;
