// Arguments of strided_copy.cl, for OpenCL C and C++.
int size[DIMS], from[DIMS], to[DIMS];
int from_start, to_start, run;
struct {
  int start, limit, along[DIMS];
} axis[AXES > 0 ? AXES : 1];  // no array may be empty
