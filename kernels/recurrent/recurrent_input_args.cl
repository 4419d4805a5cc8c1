// Arguments of recurrent_input.cl, for OpenCL C and C++.
int x_n, x_t, x_i;  // strides of the input
int images, directions, steps, inputs;
int rows;    // of a direction: the padded hidden units of each gate
int biases;  // offset of the biases
int stated;  // number of biases of a direction
