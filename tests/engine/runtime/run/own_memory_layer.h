// Counters of the OpenCL layer own_memory_layer.cpp, which the test program links, so that both are one.
#pragma once

extern "C" {

void own_memory_reset();
long own_memory_writes();  // commands that wrote to a buffer from the host since then
// Launches that waited for a command of another queue, and how many writes had been enqueued before the
// first of them.
long own_memory_waits();
long own_memory_writes_before_first_wait();
long own_memory_long_reads();  // reads that waited for a command of another queue
// The first command that a device with queues of its own would get wrong; "" while there is none.
const char* own_memory_mistake();
}
