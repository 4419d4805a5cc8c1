// Declares the arguments of convolution_squares.cl, for OpenCL C and C++.
int in_n, in_h, in_w;     // strides in chunks
int out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int out_channels, blocks;
int steps;                    // taps
int tiles, tiles_h, tiles_w;  // of all images; of an image
