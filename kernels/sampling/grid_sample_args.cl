// Arguments of grid_sample.cl, for OpenCL C and C++.
int in_n, in_c, in_h, in_w, grid_n, grid_c, grid_h, grid_w, out_n, out_c, out_h, out_w;  // strides
int ih, iw, oh, ow, vectors, items;
