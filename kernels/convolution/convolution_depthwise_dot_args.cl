// Arguments of convolution_depthwise_dot.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int channels, vectors;
int along;              // work-groups along the channels
int wide, high, tiles;  // tiles of a row, rows of tiles of an image, and tiles of all images
unsigned along_scale, wide_scale, high_scale;  // see QUOTIENT
int along_shift, wide_shift, high_shift;
