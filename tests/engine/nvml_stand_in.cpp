// A stand-in for NVIDIA's management library: one device, which takes 5 J from one call to the next, or 250 W.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6;

std::string mode() {
  const char* const set = std::getenv("CLINFER_NVML");
  return set != nullptr ? set : "";
}

int device;
unsigned long long energy = 1000;

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int nvmlInit_v2() { return mode() == "broken" ? 1 : kSuccess; }

[[gnu::visibility("default")]] int nvmlDeviceGetHandleByUUID(const char* uuid, void** found) {
  if (mode() == "other device" || std::strlen(uuid) != 40 || std::strncmp(uuid, "GPU-", 4) != 0)
    return kNotFound;
  *found = &device;
  return kSuccess;
}

[[gnu::visibility("default")]] int nvmlDeviceGetTotalEnergyConsumption(void* of,
                                                                       unsigned long long* joules) {
  if (of != &device || mode() == "old" || mode() == "no meter") return kNotSupported;
  *joules = energy += 5000;
  return kSuccess;
}

[[gnu::visibility("default")]] int nvmlDeviceGetPowerUsage(void* of, unsigned* watts) {
  if (of != &device || mode() == "no meter") return kNotSupported;
  *watts = 250'000;
  return kSuccess;
}
}
