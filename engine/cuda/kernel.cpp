// Loads modules of CUDA and gets their kernels.
#include "engine/cuda/kernel.h"

#include <array>

#include "engine/cuda/ptx.h"

namespace clinfer::cuda {

Kernel::Kernel(std::shared_ptr<const Device> device, std::string ptx, const std::string& name)
    : device_(std::move(device)) {
  const Driver& driver = device_->driver();
  const Ptx own = ptx_for_cuda(std::move(ptx));
  const Current current(*device_);
  constexpr CUjit_option kLog = 5, kLogBytes = 6;  // CU_JIT_ERROR_LOG_BUFFER and its size
  std::array<char, 1024> log{};
  std::array options{kLog, kLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  if (const CUresult result = driver.cuModuleLoadDataEx.result_of(
          &module_, own.text.c_str(), options.size(), options.data(), values.data());
      result != CUDA_SUCCESS)
    throw Failure(
        result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::unsupported,
        "CUDA does not load kernel " + name + " (" + name_of(driver, result) + ") " +
            printable(log.data()));
  try {
    driver.cuModuleGetFunction(&function_, module_, name.c_str());
    dynamic_shared_ = static_cast<unsigned>(own.dynamic_shared);
    begins_early_ = own.begins_early;
    if (dynamic_shared_ != 0)
      driver.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(dynamic_shared_));
  } catch (...) {
    driver.cuModuleUnload.result_of(module_);
    throw;
  }
}

Kernel::~Kernel() {
  const Current current(*device_, std::nothrow);
  device_->driver().cuModuleUnload.result_of(module_);
}

}  // namespace clinfer::cuda
