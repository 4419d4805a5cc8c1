// Arguments of region_yolo.cl, for OpenCL C and C++.
int cells, regions, height, width, coords, classes;
int in_n, in_c, in_h, in_w, out_n, out_c, out_h, out_w;
