// Points where a fault can be put. Each time one is passed it is counted, and the one that was
// chosen fails. The counters live in the OpenCL layer's library, which the test programs link, so
// that both are one.
#pragma once

extern "C" {

enum FaultKind { kNoFault, kAllocation, kThread, kFile, kOpenCl, kVa };

// From now on the `n`th point of that kind fails, and those after it until `in_a_row` have failed; 0:
// they are only counted.
void fault_arm(FaultKind kind, long n, long in_a_row);
long fault_passed();  // points of the kind since then
int fault_struck();   // whether one failed

// To be asked at a point: 1: fail now. Never inside the driver, whose own faults are not ours, nor
// in its threads.
int fault_strikes(FaultKind kind);
int fault_in_driver();
void fault_set_driver_thread();  // the calling thread is the driver's

// Whether code at this address is the project's, or the C++ library's, which works for it alone.
int fault_of_project(const void* address);

// OpenCL objects that were created or retained and not released.
long fault_live_objects();
}
