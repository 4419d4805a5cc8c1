// Runs a scenario again and again, each time with another of its points failing.
#pragma once

#include <functional>
#include <string>

#include "tests/faults/points.h"

namespace clinfer {

// A program under faults. Both functions run in a process of their own, which begins without OpenCL
// and GStreamer.
struct Scenario {
  std::function<void()> prepare;  // once, without faults
  // "": the right result; else what is wrong. Throws Error or what the C++ library throws when
  // something failed.
  std::function<std::string()> run;
  // How many objects of other kinds than OpenCL's are alive; they must not become more either.
  std::function<long()> live = [] { return 0; };
};

// Fails the 1st, then the 2nd ... point of `kind` until a run passes fewer; where there are more
// than `most`, as many of them at even distances. CLINFER_TEST_ALL=1: all of them. After each
// failure the scenario has to succeed without one. A crash, a hang, a wrong result or an object left
// alive fails the test and names the point. `in_a_row`: so many points fail at a time.
void fail_each(FaultKind kind, long most, const Scenario& scenario, long in_a_row = 1);

}  // namespace clinfer
