// Finds out whether the processor, the system and this process support AMX.
#include "engine/ocl/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

namespace clinfer::ocl {

namespace {

std::string ask() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1U << 24, kBytes = 1U << 25, kSystemSaves = 1U << 27;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTiles) == 0 || (d & kBytes) == 0)
    return "the processor has no AMX";
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kSystemSaves) == 0)
    return "the system saves no AMX registers";
  // XCR0: the components of the processor's state that the system saves.
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kComponents = 3U << 17;
  if ((low & kComponents) != kComponents) return "the system saves no AMX registers";
  constexpr int kAsk = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  if (syscall(SYS_arch_prctl, kAsk, kTileData) == 0) return "";
  if (errno == ENOSPC) return "a thread's signal stack is too small for the AMX registers";
  return "the system grants this process no AMX: " + std::generic_category().message(errno);
#else
  return "the processor has no AMX";
#endif
}

}  // namespace

const std::string& amx_problem() {
  static const auto& problem = *new const std::string(ask());
  return problem;
}

}  // namespace clinfer::ocl
