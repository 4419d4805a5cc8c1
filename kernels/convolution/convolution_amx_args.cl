// Arguments of convolution_amx.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // of one group
int pixels;
int rows;         // of a tile: pixels, 16 at most
int step, steps;  // bytes of a pixel that one instruction takes, a multiple of four; and how many
int merged;       // a row of the kernel reads adjacent memory
// Where the bytes of a pixel are adjacent, tiles are loaded from the input, up to that many bytes
// after its beginning; else 0.
int readable;
int copy_row;  // bytes of a pixel in a copy
int scratch;   // bytes of a work-group's copies
int zero;      // the byte of pixels outside the input
// Units of pixels, parts of a group's blocks, units * parts * groups, and how many work-groups share
// them.
int unit_tiles, units, parts, works, workers;
