// Counts the processors that this process may use.
#include "kernels/base/system/processors.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace clinfer {

unsigned available_processors() {
  // Tries larger masks, because the kernel refuses one smaller than its own, which machines with
  // very many processors have.
  for (int most = 1024; most <= 1 << 20; most *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(most)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    if (mask && sched_getaffinity(0, bytes, mask.get()) == 0)
      return static_cast<unsigned>(std::max(1, CPU_COUNT_S(bytes, mask.get())));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace clinfer
