// A stand-in for CUDA's driver library, and for what NVIDIA's OpenCL driver shares with it: controls for tests.
#pragma once

extern "C" {
// From now on the call of this function that follows `skip` others fails, and those after it; null: none fails.
void stand_in_fail(const char* function, int skip);
// Calls of a function since the last stand_in_reset().
long stand_in_calls(const char* function);
void stand_in_reset();
// Whether each graph changes a bit of what its last kernel is given.
void stand_in_corrupt(bool corrupts);
// Called with true, stops all streams where they are, until it is called with false.
void stand_in_hold(bool holds);
// Tells what was done wrong: used after it was freed, read where OpenCL works, not kept until it was over; "" if nothing.
const char* stand_in_mistake();
}
