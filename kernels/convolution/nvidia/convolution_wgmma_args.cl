// Declares the arguments of convolution_wgmma.cl, for OpenCL C and C++.
int in_n, in_h, in_w;     // strides in chunks
int out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int chunks;  // per tap
int out_channels, blocks;
int steps;  // per slice
int pixels;
unsigned ow_scale, oh_scale;  // see QUOTIENT
int ow_shift, oh_shift;
