// Arguments of tile.cl, for OpenCL C and C++.
int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // of one group
int depth;                              // rows of packed weights for one output
int pixels, tiles, tiles_per_item;
// True if a row of the kernel reads adjacent memory: kw * in_channels elements.
int merged;
// The index, in the weights, of the values that are read for pixels outside of the input.
int outside;
// True if blocks of channels are dimension 1 of the launch, and runs of tiles dimension 2.
int blocks_first;
// Bytes of the next block's weights that come into the cache with each row of weights.
int ahead;
