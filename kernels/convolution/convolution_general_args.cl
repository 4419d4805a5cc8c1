// Arguments of convolution_general.cl, for OpenCL C and C++.
int in_n, in_c, in_d, in_h, in_w, out_n, out_c, out_d, out_h, out_w;  // strides
int w_group, w_out, w_in, w_d, w_h, w_w;                              // strides of the weights
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels;  // of a group
int all_channels;               // output channels of all groups
int elements;
