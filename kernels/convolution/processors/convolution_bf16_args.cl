// Arguments of convolution_bf16.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
#include "kernels/common/geometry_args.cl"
int in_channels, out_channels, blocks;  // of one group
int pixels;
int depth;    // number of values that an output reads: taps x input channels
int merged;   // true if a row of the kernel reads adjacent memory
int direct;   // true if the values are adjacent, in whole vectors, and fit a chunk
int scratch;  // values of a work-group's copies
// Number of units of pixels; of parts of a group's blocks; units * parts * groups; and of
// work-groups that share these.
int unit_pixels, units, parts, works, workers;
