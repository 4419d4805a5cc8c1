// Arguments of reorder.cl, for OpenCL C and C++.
int tile_a, tile_b;
int size_a, from_a, size_b, to_b;  // the other step of each loop is 1
int size[DIMS], from[DIMS], to[DIMS];
