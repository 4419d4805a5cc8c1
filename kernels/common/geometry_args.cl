// Arguments of convolutions and poolings, for OpenCL C and C++ (set_geometry()): sizes of input,
// output and kernel, strides, dilations and pads.
int id, ih, iw, od, oh, ow, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw;
