// Models and files with a fault in them, for tests of verify: each function writes its files into
// the folder and returns properties of clinfer with which the fault takes effect. Programs link the
// layer of tests/faults/wrong_device.h.
#pragma once

#include <string>

#include "tests/temporary_folder.h"

namespace clinfer::planted {

// A network between whose layers values are that f16 cannot hold.
std::string overflow_in_f16(const TemporaryFolder& folder);

// A network whose averages a kernel of the user computes, too large ones if `is_wrong`.
std::string custom_layer(const TemporaryFolder& folder, bool is_wrong);

// Caches of the bundled detector, as clinfer wrote and accepts them: with other weights in the
// compiled graph, and with programs that another compiler made.
std::string cached_graph(const TemporaryFolder& folder);
std::string cached_programs(const TemporaryFolder& folder);

// A tuning file without versions, and a device that compiles the kernel wrong which it alone
// chooses. forget_compiler() makes the device right.
std::string tuned_kernel(const TemporaryFolder& folder);
void forget_compiler();

}  // namespace clinfer::planted
