// Arguments of convolution_windows.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int out_channels, blocks;
int tiles_w, tiles_h;      // tiles of a line; lines of tiles of an image
int outside;               // four bytes with the value of pixels outside of the input
int summed_w, summed_h;    // columns and lines of sums, of which there are maxima with POOL
int pool_w, pool_h;        // pads of these maxima
float scale[4], shift[4];  // of each channel of data that are quantised
