// Arguments of deformable_attention.cl, for OpenCL C and C++.
// Strides of the maps, their sizes, and strides of the points.
int map_n[MAPS], map_g[MAPS], map_h[MAPS], map_w[MAPS], height[MAPS], width[MAPS];
int grid_n[MAPS], grid_g[MAPS], grid_q[MAPS], grid_p[MAPS], grid_xy[MAPS], points[MAPS];
int weight_n, weight_g, weight_q, weight_p, out_n, out_q, out_g;  // strides
int queries, groups, blocks, items, run;
