// Declares the arguments of convolution_mma.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // per group
int parts, steps;                       // steps per tap, and steps per slice
int pixels;
int outside;                  // four bytes with the value of pixels outside the input
unsigned ow_scale, oh_scale;  // see QUOTIENT
int ow_shift, oh_shift;
