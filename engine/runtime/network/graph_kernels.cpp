// Compiles kernels for CUDA, and keeps their code in the cache: the driver keeps only what it
// compiles when it loads PTX, one program after the other.
#include "engine/runtime/network/graph_kernels.h"

namespace clinfer {

namespace {

// The version of the code in the cache. It changes when engine/cuda makes other code of the same
// PTX.
constexpr const char* kVersion = "CUDA code 1|";

}  // namespace

GraphKernels::GraphKernels(std::shared_ptr<const cuda::Device> device, const DeviceInfo& info,
                           const ocl::ProgramCache* cache)
    : device_(std::move(device)),
      identity_(kVersion + info.name + "|" + info.driver + "|"),
      cache_(cache ? std::make_optional(*cache) : std::nullopt) {}

std::shared_ptr<const cuda::Kernel> GraphKernels::make(const std::string& name, std::string ptx) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  }
  auto made = load_or_compile(name, std::move(ptx));
  const std::lock_guard lock(mutex_);
  return kernels_.try_emplace(name, std::move(made)).first->second;
}

const cuda::Kernel& GraphKernels::at(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return *kernels_.at(name);
}

std::shared_ptr<const cuda::Kernel> GraphKernels::load_or_compile(const std::string& name,
                                                                  std::string ptx) const {
  const std::string key = identity_ + ptx;
  if (cache_)
    if (const auto known = cache_->load(key))
      if (const auto code = cuda::Code::unpack(*known)) try {
          return std::make_shared<cuda::Kernel>(device_, *code, name);
        } catch (const cuda::Failure&) {
          // Another build of the same driver may have made the code, so it is compiled anew.
        }
  const cuda::Code code = cuda::compile(*device_, std::move(ptx), name);
  auto made = std::make_shared<cuda::Kernel>(device_, code, name);
  if (cache_) cache_->store(key, code.pack());
  return made;
}

}  // namespace clinfer
