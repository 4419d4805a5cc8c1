// Finds devices of CUDA by their identity.
#include "engine/cuda/device.h"

#include <cstring>
#include <map>
#include <mutex>

namespace clinfer::cuda {

Device::Device(const Driver& driver, CUdevice number) : driver_(driver), number_(number) {
  driver_.cuDevicePrimaryCtxRetain(&context_, number_);
}

std::shared_ptr<const Device> Device::find(const Uuid& uuid) {
  static std::mutex mutex;
  static auto& all = *new std::map<Uuid, std::shared_ptr<const Device>>;
  const std::lock_guard lock(mutex);
  if (const auto known = all.find(uuid); known != all.end()) return known->second;
  const Driver& driver = Driver::get();
  int count = 0;
  driver.cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid own{};
    driver.cuDeviceGet(&device, i);
    driver.cuDeviceGetUuid_v2(&own, device);
    if (std::memcmp(own.bytes, uuid.data(), uuid.size()) == 0)
      return all[uuid] = std::shared_ptr<const Device>(new Device(driver, device));
  }
  throw Failure(ErrorCode::unsupported, "CUDA does not know this device");
}

Current::Current(const Device& device) : device_(device) {
  device_.driver().cuCtxPushCurrent_v2(device_.context());
}

Current::Current(const Device& device, std::nothrow_t) noexcept : device_(device) {
  device_.driver().cuCtxPushCurrent_v2.result_of(device_.context());
}

Current::~Current() {
  CUcontext own = nullptr;
  device_.driver().cuCtxPopCurrent_v2.result_of(&own);
}

}  // namespace clinfer::cuda
