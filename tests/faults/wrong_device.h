// An OpenCL layer by which a device computes wrong results without an error.
#pragma once

enum class Wrong {
  nothing,
  dropped,   // each Nth launch is not made
  half,      // each Nth launch is made for the first half of the work-items alone
  argument,  // the Nth integer of kernels' structs of arguments is less by one
  weights,   // each Nth number of data that is copied to the device at creation is another one
  nan,       // each Nth number that is read is NaN
  infinite,  // ... is infinite
  scaled,    // ... is larger by a half
  shifted,   // numbers that are read are those of the Nth place before
};

// While this environment variable is set, programs whose text has its value in it are compiled so
// that they store floats that are too large by a sixteenth, in compiler processes as well. It is not
// counted by wrong_so_far().
inline constexpr const char* kWrongPrograms = "CLINFER_TEST_WRONG_PROGRAMS";

extern "C" {

// Takes effect at once, for all devices. `which` is the N above, at least 1; 0 for the first integer.
void make_wrong(Wrong what, int which);

// The number of faults since the last make_wrong().
long wrong_so_far();
}
