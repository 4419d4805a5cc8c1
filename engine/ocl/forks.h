// Refuses to use devices in a fork of the process that opened them.
#pragma once

namespace clinfer::ocl {

// Throws Error if this process is a fork of the one that listed the devices. The threads of drivers
// are not in it, so that an inference would never end. Thread-safe, takes well below a microsecond.
void refuse_forks();

}  // namespace clinfer::ocl
