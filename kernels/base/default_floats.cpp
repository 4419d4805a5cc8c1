// Sets the control words of floating-point units. Processors with SSE have two, and writing that of
// the x87 unit takes long.
#include "kernels/base/default_floats.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace clinfer {

namespace {

bool are_default() {
#ifdef __SSE2__
  constexpr unsigned kDefault =
      0x1f80;  // bits of MXCSR: all exceptions masked, round to nearest, with denormals
  if ((_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_MASK)) != kDefault) return false;
#endif
  return fegetexcept() == 0 && std::fegetround() == FE_TONEAREST;
}

}  // namespace

DefaultFloats::DefaultFloats() : has_others_(!are_default()) {
  if (!has_others_) return;
  std::fegetenv(&application_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloats::~DefaultFloats() {
  if (has_others_) std::fesetenv(&application_);
}

}  // namespace clinfer
