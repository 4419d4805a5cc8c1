// Arguments of deformable_convolution.cl, for OpenCL C and C++.
int in_n, in_c, in_h, in_w, off_n, off_c, off_h, off_w, mask_n, mask_c, mask_h, mask_w;
int out_n, out_c, out_h, out_w;  // strides
int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
int in_channels, out_channels, blocks, all_blocks;  // of one group; of all groups
int deformed;                                       // input channels that share offsets
int items;
