// Arguments of non_max_suppression.cl, for OpenCL C and C++.
int box_n, box_b, box_i, score_n, score_c, score_b;  // strides
int lists, classes, boxes, most;  // lists: of all images; most: limit of rows of a list
int room;                         // keys of a list
int merged, places, counts;       // positions in the workspace, in keys
float overlap, threshold;
