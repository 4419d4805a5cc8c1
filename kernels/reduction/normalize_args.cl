// Arguments of normalize.cl, for OpenCL C and C++.
int size_c, size_w, size_h, size_n;
int in_c, in_w, in_h, in_n, out_c, out_w, out_h, out_n;  // strides
int affine_c, affine_w, affine_h, affine_n;              // strides of gamma and beta
// `items`: vectors of rows (or rows, if c runs along them), of which a work-group processes
// items_per_group in a loop.
int items, items_per_group;
float epsilon, share;  // share: weight of one element in the variance
