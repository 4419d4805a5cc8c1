// Arguments of the kernels of attention, for OpenCL C and C++: strides of the batch dimensions,
// outermost first, and of rows; for bias and mask also of keys. A stride is 0 where a dimension is
// broadcast.
int queries, keys;
int size1, size2, size3;  // of batch dimensions except the outermost
int q0, q1, q2, q3, q_row;
int k0, k1, k2, k3, k_row;
int v0, v1, v2, v3, v_row;
int o0, o1, o2, o3, o_row;
int b0, b1, b2, b3, b_row, b_key;
int m0, m1, m2, m3, m_row, m_key;
int rows, blocks;  // queries of a work-group, and work-groups of a head
float scale, masked;
