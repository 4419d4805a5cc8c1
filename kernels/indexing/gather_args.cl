// Arguments of gather.cl, for OpenCL C and C++.
int size[DIMS], from[DIMS], to[DIMS], at[DIMS];
int indexed_size[INDEXED], indexed_stride[INDEXED];
int index_step, run;
