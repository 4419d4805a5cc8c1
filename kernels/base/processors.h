// Counts the processors that this process may use.
#pragma once

namespace clinfer {

// The processors in the calling thread's affinity mask (taskset, a container's cpuset), at least 1.
// std::thread::hardware_concurrency() counts all processors of the machine, which in such a container
// starts many times more threads and compiler processes than can run. Thread-safe.
unsigned available_processors();

}  // namespace clinfer
