// Arguments of roi_pooling.cl, for OpenCL C and C++.
int in_n, in_c, in_h, in_w, roi_n, roi_i, extra_n, extra_c, extra_h, extra_w;  // strides
int out_n, out_c, out_h, out_w;
int images, height, width;    // of the features
int channels, rows, columns;  // of the output
// For kinds 2 to 4; label_channels: channels that share offsets.
int group, bins_y, bins_x, part, label_channels;
int samples, average;  // kind 5: samples along a bin, 0 for one per pixel
int items;
float scale, trans, before, after, least;
