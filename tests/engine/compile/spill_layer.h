// Functions by which a test directs the OpenCL layer spill_layer.cpp, which it links.
#pragma once

extern "C" {

// Makes the next `kernels` different kernels of this source ("convolution") spill registers, the
// first one most; all others do not.
void spill_layer_begin(const char* source, int kernels);
int spill_layer_asked();  // how many different kernels of it were asked about since then
}
