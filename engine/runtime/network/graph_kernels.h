// The kernels of a network that CUDA launches.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/cuda/kernel.h"
#include "engine/ocl/compiler/program_cache.h"
#include "engine/ocl/device.h"

namespace clinfer {

// Kernels by name. Thread-safe, and needs nothing of the network, because threads that compile may
// outlive it.
class GraphKernels {
 public:
  // `cache` may be null.
  GraphKernels(std::shared_ptr<const cuda::Device> device, const DeviceInfo& info,
               const ocl::ProgramCache* cache);

  // Returns the kernel, which is made of the driver's binary of its program where it is not known
  // yet: of compiled code in the cache, or by compiling. Throws cuda::Failure.
  std::shared_ptr<const cuda::Kernel> make(const std::string& name, std::string ptx);
  // Returns a kernel that was made. Throws std::out_of_range.
  const cuda::Kernel& at(const std::string& name) const;

 private:
  std::shared_ptr<const cuda::Kernel> load_or_compile(const std::string& name,
                                                      std::string ptx) const;

  const std::shared_ptr<const cuda::Device> device_;
  const std::string identity_;  // of device and driver
  const std::optional<ocl::ProgramCache> cache_;
  mutable std::mutex mutex_;  // guards the map
  std::map<std::string, std::shared_ptr<const cuda::Kernel>> kernels_;
};

}  // namespace clinfer
