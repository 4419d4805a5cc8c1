// Arguments of detection_output.cl, for OpenCL C and C++.
int box_n, box_i, score_n, score_i, prior_n, prior_r, prior_i;  // strides
int object_n, object_i, first_n, first_i;
int priors, classes, lists, background, rows;  // lists: number of lists of an image
// Boxes of a list that are compared; that may remain; boxes of an image that are kept.
int listed, most, keep;
int own_boxes;              // true if each class has its own boxes
int room, order_room;       // keys of a list; keys to order its boxes by label
int order, places, counts;  // positions in the workspace, in keys
float width, height, confidence, objectness, overlap;
