// Arguments of reduce.cl, for OpenCL C and C++.
int kept[4], kept_from[4], kept_to[4];  // loops over the output, innermost first
int reduced[3], reduced_from[3];        // reduced loops, innermost first
int items;                              // vectors of the output
float scale;
