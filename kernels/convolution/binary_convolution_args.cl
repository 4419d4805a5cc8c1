// Arguments of binary_convolution.cl, for OpenCL C and C++.
int in_n, in_c, in_h, in_w, out_n, out_c, out_h, out_w;  // strides
int ih, iw, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
int in_channels, out_channels, words;  // words of 32 channels
int pad;                               // value of pixels outside the input: -1, 0 or 1
int items;
