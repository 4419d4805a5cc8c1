// Allocates device memory by CUDA.
#include "engine/cuda/memory.h"

#include <cstdint>

namespace clinfer::cuda {

Memory::Memory(std::shared_ptr<const Device> device, size_t bytes) : device_(std::move(device)) {
  map(bytes, [this](const CUmemAllocationProp& properties) {
    device_->driver().cuMemCreate(&handle_, bytes_, &properties, 0);
  });
}

Memory::Memory(std::shared_ptr<const Device> device, int descriptor, size_t bytes)
    : device_(std::move(device)) {
  map(bytes, [&](const CUmemAllocationProp& properties) {
    device_->driver().cuMemImportFromShareableHandle(
        &handle_, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
        properties.requestedHandleTypes);
  });
}

void Memory::map(size_t bytes, const std::function<void(const CUmemAllocationProp&)>& obtain) {
  const Driver& driver = device_->driver();
  const Current current(*device_);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_->number()};
  size_t step = 0;
  driver.cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  bytes_ = (bytes + step - 1) / step * step;
  try {
    obtain(properties);
    driver.cuMemAddressReserve(&address_, bytes_, 0, 0, 0);
    driver.cuMemMap(address_, bytes_, 0, handle_, 0);
    mapped_ = true;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    driver.cuMemSetAccess(address_, bytes_, &access, 1);
  } catch (...) {
    release();
    throw;
  }
}

Memory::~Memory() {
  const Current current(*device_, std::nothrow);
  release();
}

void Memory::release() noexcept {
  const Driver& driver = device_->driver();
  if (mapped_) driver.cuMemUnmap.result_of(address_, bytes_);
  if (address_ != 0) driver.cuMemAddressFree.result_of(address_, bytes_);
  if (handle_ != 0) driver.cuMemRelease.result_of(handle_);
}

int Memory::export_descriptor() const {
  const Current current(*device_);
  int descriptor = -1;
  device_->driver().cuMemExportToShareableHandle(&descriptor, handle_,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return descriptor;
}

}  // namespace clinfer::cuda
