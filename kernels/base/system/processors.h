// Counts the processors that this process may use.
#pragma once

namespace clinfer {

// Returns the number of processors in the calling thread's affinity mask (taskset, a container's
// cpuset), at least 1. std::thread::hardware_concurrency() counts all processors of the machine, so
// that in such a container many more threads and compiler processes would start than can run.
// Thread-safe.
unsigned available_processors();

}  // namespace clinfer
