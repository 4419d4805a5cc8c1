// Arguments of pooling.cl, for OpenCL C and C++.
int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int end_d, end_h, end_w;  // sizes with the end pads
int channels, vectors;
// The tiles of a row, of all rows of all images, and of a work-item.
int row_tiles, tiles, tiles_per_item;
