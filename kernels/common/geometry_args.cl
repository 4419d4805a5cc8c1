// Sizes of input, output and kernel, strides, dilations and pads of a convolution or pooling, for
// OpenCL C and C++ (set_geometry()).
int id, ih, iw, od, oh, ow, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw;
