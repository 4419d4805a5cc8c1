// Preloaded: PoCL compiles for the processor that $OLDER_PROCESSOR names, by LLVM's names of those
// with AVX2 and without AVX-512 (haswell, znver3, alderlake), and all but the last lack AVX-VNNI.
// The first tier still uses all that the processor has.
#include <dlfcn.h>
#include <link.h>
#include <sys/platform/x86.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

const char* name() {
  const char* const given = std::getenv("OLDER_PROCESSOR");
  return given != nullptr ? given : "haswell";
}

// The function of this name in LLVM, which drivers load out of sight of RTLD_NEXT.
void* of_llvm(const char* function) {
  void* library = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (std::strstr(info->dlpi_name, "libLLVM") == nullptr) return 0;
        *static_cast<void**>(found) = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        return 1;
      },
      &library);
  void* const found = library != nullptr ? dlsym(library, function) : nullptr;
  if (found == nullptr) std::abort();
  return found;
}

}  // namespace

// As in LLVM's headers, which are not included: drivers bring LLVMs of several versions.
namespace llvm {

struct StringRef {
  const char* text;
  size_t length;
};

struct MallocAllocator;

template <typename Value, typename Allocator>
struct StringMap {
  struct Entry {  // its name follows
    size_t length;
    Value value;
  };
  Entry** entries;
  unsigned size;
};

namespace sys {

using Features = StringMap<bool, MallocAllocator>;

__attribute__((visibility("default"))) StringRef getHostCPUName() {
  return {name(), std::strlen(name())};
}

__attribute__((visibility("default"))) bool getHostCPUFeatures(Features& features) {
  using Ask = bool (*)(Features&);
  static const auto ask = reinterpret_cast<Ask>(
      of_llvm("_ZN4llvm3sys18getHostCPUFeaturesERNS_9StringMapIbNS_15MallocAllocatorEEE"));
  if (!ask(features)) return false;
  for (unsigned i = 0; i < features.size; ++i) {
    Features::Entry* const entry = features.entries[i];
    // Erased entries are marked by an address that none has.
    if (entry == nullptr || reinterpret_cast<intptr_t>(entry) < 0) continue;
    const std::string_view feature(reinterpret_cast<const char*>(entry + 1), entry->length);
    if (feature.substr(0, 6) == "avx512") entry->value = false;
  }
  return true;
}

}  // namespace sys
}  // namespace llvm

// glibc's, of which x86_cpu_active() is made.
extern "C" const cpuid_feature* __x86_get_cpuid_feature_leaf(unsigned leaf) {
  using Ask = const cpuid_feature* (*)(unsigned);
  static const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_NEXT, "__x86_get_cpuid_feature_leaf"));
  constexpr unsigned kBits = 32, kOfLeaf = 4 * kBits, kEax = 0;
  static cpuid_feature without;
  if (leaf != x86_cpu_AVX_VNNI / kOfLeaf || std::strcmp(name(), "alderlake") == 0) return ask(leaf);
  without = *ask(leaf);
  without.active_array[kEax] &= ~(1U << x86_cpu_AVX_VNNI % kBits);
  return &without;
}
