// Arguments of convolution_amx.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // of one group
int pixels;
int rows;         // rows of a tile: at most 16 pixels
int step, steps;  // bytes of a pixel for one instruction, a multiple of four; number of these steps
int merged;       // true if a row of the kernel reads adjacent memory
// If the bytes of a pixel are adjacent, tiles are loaded from the input, up to this many bytes from
// its beginning; else 0.
int readable;
int copy_row;  // bytes of a pixel in a copy
int scratch;   // bytes of a work-group's copies
int zero;      // the byte of pixels outside the input
// Number of units of pixels; of parts of a group's blocks; units * parts * groups; and of
// work-groups that share these.
int unit_tiles, units, parts, works, workers;
