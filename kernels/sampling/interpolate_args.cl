// Arguments of interpolate.cl, for OpenCL C and C++.
int in_n, in_d, in_h, in_w, out_n, out_d, out_h, out_w;  // strides
int od, oh, ow;
int start_d, start_h, start_w, weight_d, weight_h, weight_w;  // offsets of the axes' tables
int kd, kh, kw;
int channels, vectors;
// The tiles of a row, of all rows of all images, and of a work-item.
int row_tiles, tiles, tiles_per_item;
