// Compiles loops.inc for each instruction set, and chooses among the results.
#include "engine/host/kernels.h"

namespace clinfer::host {

namespace {

// Uses vectors of four floats, which every 64-bit processor supports.
namespace plain {
#define NAME "plain"
#define RATE 2.5e9
#define LANES 4
#define VECTORS 1
#define TARGET
#include "engine/host/loops.inc"
#undef NAME
#undef RATE
#undef LANES
#undef VECTORS
#undef TARGET
}  // namespace plain

#ifdef __x86_64__
namespace avx2 {
#define NAME "avx2"
#define RATE 1e10
#define LANES 8
#define VECTORS 1
#define TARGET __attribute__((target("avx2,fma")))
#include "engine/host/loops.inc"
#undef NAME
#undef RATE
#undef LANES
#undef VECTORS
#undef TARGET
}  // namespace avx2

namespace avx512 {
#define NAME "avx512"
#define RATE 1.5e10
#define LANES 16
#define VECTORS 2
#define TARGET __attribute__((target("avx512f,fma")))
#include "engine/host/loops.inc"
#undef NAME
#undef RATE
#undef LANES
#undef VECTORS
#undef TARGET
}  // namespace avx512
#endif

}  // namespace

const Kernels* find_kernels(std::string_view name) {
#ifdef __x86_64__
  if (name == "avx512") return __builtin_cpu_supports("avx512f") ? &avx512::kKernels : nullptr;
  if (name == "avx2")
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2::kKernels
                                                                           : nullptr;
#endif
  return name == "plain" ? &plain::kKernels : nullptr;
}

const Kernels& kernels() {
  static const Kernels& best = [&]() -> const Kernels& {
    for (const std::string_view name : {"avx512", "avx2"})
      if (const Kernels* found = find_kernels(name)) return *found;
    return plain::kKernels;
  }();
  return best;
}

}  // namespace clinfer::host
