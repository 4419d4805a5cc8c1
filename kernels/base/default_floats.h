// Sets floating-point arithmetic to C++'s defaults, whatever the application has set for its
// threads.
#pragma once

#include <cfenv>

namespace clinfer {

// While it lives, floating-point operations of this thread trap nothing (applications may have
// called feenableexcept(), and new threads inherit that), round to nearest and keep denormals; so
// do threads that are started meanwhile. Then the application's settings are back. Takes some
// nanoseconds where these are the defaults. Belongs to one thread. Every function that an
// application may call, and that computes or calls a driver, begins with one.
class DefaultFloats {
 public:
  DefaultFloats();
  ~DefaultFloats();
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  const bool has_others_;
  std::fenv_t application_;  // set if has_others_
};

}  // namespace clinfer
