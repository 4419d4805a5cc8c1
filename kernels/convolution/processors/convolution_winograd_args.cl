// Arguments of convolution_winograd.cl, for OpenCL C and C++.
int in_n, in_h, in_w, out_n, out_h, out_w;  // strides
int ih, iw, oh, ow, ph, pw;
int in_channels, out_channels, blocks;
// The tiles of a row, of an image, and of all images; units of tiles, and work-groups that share
// them.
int row_tiles, image_tiles, tiles, units, groups;
int scratch;  // elements for a work-group
float zero;   // the zero point of bytes
