// Arguments of convolution_depthwise.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int channels, vectors;
// The tiles of a row, of all rows of all images, and of a work-item.
int row_tiles, tiles, tiles_per_item;
int zeros;  // index of the first zero
