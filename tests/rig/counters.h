// The rig's counters and settings, for tests.
#pragma once

#include <dlfcn.h>
#include <glib.h>

#include <cstdlib>

#include "tests/rig/display.h"
#include "tests/rig/rig.h"

namespace clinfer {

inline RigVaCounters va_counters() {
  RigVaCounters counters{};
  rig_function<RigReadVaCounters>(rig_va_display(0), "rig_va_counters")(&counters);
  return counters;
}

inline RigClCounters cl_counters() {
  static void* layer = dlopen(std::getenv("CLINFER_RIG_LAYER"), RTLD_NOW | RTLD_NOLOAD);
  RigClCounters counters{};
  if (layer == nullptr) return counters;  // no OpenCL yet
  reinterpret_cast<RigReadClCounters>(dlsym(layer, "rig_cl_counters"))(&counters);
  return counters;
}

// Sets a variable of the rig for as long as it lives. Other threads must not be at work.
struct Setting {
  Setting(const char* name, const char* value) : name(name) { g_setenv(name, value, TRUE); }
  ~Setting() { g_unsetenv(name); }
  const char* name;
};

}  // namespace clinfer
