// Preloaded: the process and all its threads begin as an application that traps floating-point exceptions.
#include <cfenv>

namespace {

[[gnu::constructor]] void trap() { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW); }

}  // namespace
