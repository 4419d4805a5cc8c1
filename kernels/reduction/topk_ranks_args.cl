// Arguments of topk_ranks.cl, for OpenCL C and C++.
int size[DIMS], from[DIMS], to[DIMS], at[DIMS];
int length, parts, from_step, to_step, at_step;
