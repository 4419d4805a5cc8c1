// Arguments of preprocess.cl, for OpenCL C and C++.
int component_offset[3], row_stride[3], step[3];  // bytes; Y, U, V or R, G, B
int shift_x, shift_y;                             // log2 of the subsampling of U and V
int from_x, from_y, from_width, from_height;      // the part of the frame that is used, pixels
int to_x, to_y, to_width, to_height;              // its position in the network's input
int width, height, channels;                      // of the network's input
int stride_x, stride_y, stride_c, out_offset;     // elements
int coefficient[5];                               // Y; V to R; U to B; U to G; V to G
int down, black, middle, fraction_bits;           // see SAMPLE, EXACT
float turn[6];  // TURNED: the place in the frame of a pixel of the picture, by column, row and 1
float weight[9], bias[3], pad[3];  // from 8-bit R, G, B to the network's channels
