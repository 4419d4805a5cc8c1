// An OpenCL layer that stands for devices on which one way to compute is faster than another: each
// queue takes a time for each launch, which was set when the queue was made.
#pragma once

extern "C" {

// Queues that are made from now on take so many milliseconds for each launch, one after the other,
// whatever other queues do. Less than 0: none can be made.
void set_pace(int milliseconds);
}
