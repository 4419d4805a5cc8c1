// Arguments of proposal.cl, for OpenCL C and C++.
int score_n, score_c, score_h, score_w, delta_n, delta_c, delta_h, delta_w;  // strides
// scale_x: index of the scale in the numbers of the picture.
int anchors, rows, columns, scale_x, before, after;
int most;          // boxes that may remain of an image
int room, places;  // keys of a list; position in the workspace, in keys
float stride, least, overlap, size_scale, coordinate_scale;
