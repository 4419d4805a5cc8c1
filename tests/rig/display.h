// VA displays of the software driver, without X, Wayland or DRM.
#pragma once

// Display `number` of this process (0..3), initialised at its first use and kept to the end, when
// its counters are written to standard error if RIG_REPORT is set; misuse or surfaces still alive
// then fail the process. Null, with a line on standard error, when the driver cannot be loaded.
extern "C" void* rig_va_display(unsigned number);
