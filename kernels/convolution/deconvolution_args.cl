// Arguments of deconvolution.cl, for OpenCL C and C++.
int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // of one group; blocks of VECTOR output channels
int all_blocks;                         // of all groups
int row_tiles, tiles, tiles_per_item;   // tiles of one phase of a row; of all rows; of a work-item
int zeros;                              // index of the first zero
